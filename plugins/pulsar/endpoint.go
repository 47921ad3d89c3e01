// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"log/slog"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// endpoint is the configured transport.
type endpoint struct {
	name     string
	settings settings.Settings
	address  client.Address
	log      *slog.Logger
	readers  []reader     // of the last Inspect, those that nothing refuses
	dead     []topic.Name // of the last Inspect: the dead letters of registrations
}

func newEndpoint(name string, set settings.Settings, log *slog.Logger) *endpoint {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &endpoint{name: name, settings: set, log: log}
}
