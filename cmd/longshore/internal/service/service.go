// SPDX-License-Identifier: Apache-2.0

// Package service makes a host of a service file.
package service

import (
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/host"
)

// Options say how a service is run.
type Options struct {
	Logger  *slog.Logger
	Host    []host.Option // beside the logger
	Environ []string      // of the commands
}

// Build declares all that f holds on a new host. Its findings are what only the
// command line can see, such as commands that are not there; the host has none
// of them.
func Build(f *config.File, o Options) (*host.Host, []host.Finding) {
	opts := append(slices.Clone(o.Host), host.WithLogger(slog.New(formHandler{o.Logger.Handler()})))
	if f.Defaults != nil {
		opts = append(opts, host.WithDefaults(policy(&f.Defaults.Policy)...))
	}
	h := host.New(opts...)
	endpoints := make(map[string]*host.Endpoint, len(f.Endpoints))
	for _, name := range slices.Sorted(maps.Keys(f.Endpoints)) {
		e := f.Endpoints[name]
		p := host.Plugin{Name: e.Transport, Path: e.Path, Checksum: e.Checksum, Env: e.Env, Optional: e.Optional}
		if e.Stdio {
			p.Stdio = &host.Stdio{In: os.Stdin, Out: os.Stdout}
		}
		var settings any
		if e.Settings != nil {
			settings = e.Settings
		}
		endpoints[name] = h.Endpoint(name, p, settings)
		if e.Defaults != nil {
			endpoints[name].Defaults(policy(&e.Defaults.Policy)...)
		}
	}
	var found []host.Finding
	for _, s := range f.Subscriptions {
		sub := endpoints[s.From].Subscription(s.Name, subscriptionOptions(f, s)...)
		if s.Paused {
			sub.Pause()
		}
		handler, err := handle(f, s, o)
		if err != nil {
			found = append(found, host.Finding{
				Endpoint: s.From, Subscription: s.Name, Option: optionCommand, Message: err.Error(), Err: err,
			})
		}
		host.Handle(sub, handler, rules(f, s)...)
	}
	return h, found
}

// subscriptionOptions returns what a subscription has beside its rules.
func subscriptionOptions(f *config.File, s *config.Subscription) []host.SubscriptionOption {
	var opts []host.SubscriptionOption
	if s.Options != nil {
		opts = append(opts, host.Options(s.Options))
	}
	if w := f.WindowOf(s); w != (config.Window{}) {
		opts = append(opts, host.Window(int(w.Messages), w.Bytes))
	}
	return opts
}
