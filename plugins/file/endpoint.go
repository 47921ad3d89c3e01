// SPDX-License-Identifier: Apache-2.0

package file

import (
	"log/slog"
	"slices"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// endpoint is the configured transport.
type endpoint struct {
	transport *Transport
	name      string
	settings  settings.Settings
	log       *slog.Logger
	usage     pluginapi.Usage // of the last Inspect
}

func newEndpoint(t *Transport, name string, set settings.Settings, log *slog.Logger) *endpoint {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &endpoint{transport: t, name: name, settings: set, log: log}
}

// publishes reports whether something is sure to be published, so that the
// writer is opened at once. Copies that a handler alone may ask for (a delayed
// retry without any policy) are not: many services may read a file that another
// process writes.
func publishes(u pluginapi.Usage) bool {
	return slices.ContainsFunc(u.Destinations, func(t pluginapi.Target) bool {
		if t.Purpose != pluginapi.PurposeRetry || len(t.For) == 0 { // or for another endpoint
			return true
		}
		return slices.ContainsFunc(t.For, func(id uint32) bool {
			return int64(id) >= int64(len(u.Registrations)) || hasPolicy(&u.Registrations[id])
		})
	})
}

// hasPolicy reports whether a registration declares what can lead to a publish. A
// retry of a group is no copy, unless it is to go elsewhere.
func hasPolicy(r *pluginapi.Registration) bool {
	var o settings.Subscription
	if err := r.Options.Bind(&o); err == nil && o.Group != "" {
		return r.RetryTo != ""
	}
	return r.Attempts > 0 || r.Elapsed > 0 || r.Backoff > 0 || r.DeadLetter != "" || r.RetryTo != ""
}
