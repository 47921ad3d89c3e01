// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"log/slog"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// endpoint is the configured transport.
type endpoint struct {
	name     string
	settings settings.Settings
	address  client.Address
	user     client.Credentials
	log      *slog.Logger
	readers  []reader // of the last Inspect, those that nothing refuses
}

func newEndpoint(name string, set settings.Settings, log *slog.Logger) *endpoint {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &endpoint{name: name, settings: set, log: log}
}

// kept reports whether the server keeps the session, as far as settings say it:
// then what is unsettled comes again.
func (e *endpoint) kept() bool { return !*e.settings.CleanStart && e.settings.SessionExpiry > 0 }

// clientID is the client id of one of the endpoint's connections, "" is its own.
func (e *endpoint) clientID(connection string) string {
	if connection == "" {
		return e.settings.ClientID
	}
	return e.settings.ClientID + "-" + connection
}
