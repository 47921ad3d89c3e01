// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"log/slog"
	"strings"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// endpoint is the configured transport.
type endpoint struct {
	name     string
	settings settings.Settings
	bind     *peering.Address // nil: it dials
	connect  []peering.Address
	log      *slog.Logger
	readers  []pluginapi.Registration // of the last Inspect
}

func newEndpoint(name string, set settings.Settings, log *slog.Logger) *endpoint {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &endpoint{name: name, settings: set, log: log}
}

// place is where the endpoint is, as its settings say it.
func (e *endpoint) place() string {
	if e.bind != nil {
		return e.settings.Bind
	}
	return strings.Join(e.settings.Connect, ", ")
}

// does says what the endpoint does at its addresses.
func (e *endpoint) does() string {
	if e.bind != nil {
		return "binds " + e.place()
	}
	return "dials " + e.place()
}
