// SPDX-License-Identifier: Apache-2.0

// Package settings holds the settings of the memory transport, which tests use
// to switch every capability.
package settings

import (
	"maps"

	"github.com/longshore-go/longshore/core"
)

// Rest is the name under which Sources and Destinations say what holds for
// names that they do not list.
const Rest = "*"

// Own as the address of a Profile means the subscription's own name.
const Own = "own"

// Settings are the memory transport's settings.
type Settings struct {
	// Address is the broker's Unix socket.
	Address string `json:"address" required:"true" doc:"Unix socket of the broker."`
	// Control makes the plugin dial in Configure already, so that a test can stop
	// or refuse it there and in Inspect.
	Control bool `json:"control,omitempty" doc:"Dial the broker in Configure."`
	// Session names a session that is kept over connections; empty means that
	// the broker gives one, which goes on by the resume bytes.
	Session string `json:"session,omitempty" doc:"Name of the kept session."`
	// Password is checked by nobody; tests see that it is shown nowhere.
	Password core.Secret `json:"password,omitzero" doc:"A secret that must not be shown."`
	// Sources says what subscriptions can do, by name; see Rest. Without an
	// entry a subscription is of KindC.
	Sources map[string]Source `json:"sources,omitempty" doc:"Subscriptions by name, * for the rest."`
	// Destinations says what names can be published to and how; see Rest.
	// Without an entry a name is stored, kept by the broker, and takes any
	// header.
	Destinations map[string]Destination `json:"destinations,omitempty" doc:"Destinations by name, * for the rest."`
}

// Source is what one subscription can do. A name that ends with * is a pattern
// over queues.
type Source struct {
	// Profiles are its capability sets; a message names its own by index.
	Profiles []Profile `json:"profiles,omitempty" doc:"Capability sets."`
	// Started is what opening the subscription says in place of Profiles.
	Started []Profile `json:"started,omitempty" doc:"Capability sets as opened, narrower."`
	// Raw leaves out the helpers of the SDK: acks of a cumulative profile go to the
	// broker as they come.
	Raw bool `json:"raw,omitempty" doc:"Without the helpers of the SDK."`
	// Held makes a delayed requeue of one at once by holding deliveries in the
	// plugin, MaxHeld at most.
	Held    bool `json:"held,omitempty" doc:"Delayed requeues by the SDK's Held."`
	MaxHeld int  `json:"max_held,omitempty" min:"0" doc:"How many it holds, 0 for its default."`
	// LateAcks makes the broker take an ack of a delivery that became void as long
	// as its message was not delivered again.
	LateAcks bool `json:"late_acks,omitempty" doc:"Acks by identity are taken after a void."`
	// NoIdentity leaves identities off deliveries.
	NoIdentity bool `json:"no_identity,omitempty" doc:"Deliveries have no identity."`
	// Refuse and Warn are findings of Inspect.
	Refuse string `json:"refuse,omitempty" doc:"Refused by Inspect for this reason."`
	Warn   string `json:"warn,omitempty" doc:"Warned of by Inspect."`
}

// Destination is what one name can do as a destination.
type Destination struct {
	Confirms   string        `json:"confirms,omitempty" enum:"nothing,queued,handed-over,stored" doc:"What a receipt is worth, stored by default."`
	Retains    string        `json:"retains,omitempty" enum:"nothing,process,transport" doc:"Who keeps a message, transport by default."`
	MaxDelay   core.Duration `json:"max_delay,omitzero" doc:"Limit of delays that the broker carries out."`
	Dedups     bool          `json:"dedups,omitempty" doc:"One message for one dedup id."`
	Headers    string        `json:"headers,omitempty" enum:"none,native-text,native-bytes,enveloped" doc:"How headers travel, native-bytes by default."`
	NoRepeats  bool          `json:"no_repeats,omitempty" doc:"One header name cannot come several times."`
	MaxBytes   int64         `json:"max_bytes,omitempty" doc:"Largest payload plus headers."`
	MaxHeaders int           `json:"max_headers,omitempty" doc:"Most headers."`
	Refuse     string        `json:"refuse,omitempty" doc:"Refused by Inspect for this reason."`
	Warn       string        `json:"warn,omitempty" doc:"Warned of by Inspect."`
}

// Source returns what holds for a subscription.
func (s Settings) Source(name string) Source {
	src, ok := s.Sources[name]
	if !ok {
		src = s.Sources[Rest]
	}
	if len(src.Profiles) == 0 {
		src.Profiles = []Profile{ProfileOf(KindC())}
	}
	if len(src.Started) == 0 {
		src.Started = src.Profiles
	}
	return src
}

// Destination returns what holds for a destination.
func (s Settings) Destination(name string) Destination {
	d, ok := s.Destinations[name]
	if !ok {
		d = s.Destinations[Rest]
	}
	return d
}

// With returns the settings with a subscription of these capabilities, one set
// a profile.
func (s Settings) With(name string, profiles ...core.Capabilities) Settings {
	src := s.Sources[name]
	src.Profiles = nil
	for _, c := range profiles {
		src.Profiles = append(src.Profiles, ProfileOf(c))
	}
	return s.WithSource(name, src)
}

// WithSource returns the settings with this entry among the sources.
func (s Settings) WithSource(name string, src Source) Settings {
	m := maps.Clone(s.Sources)
	if m == nil {
		m = map[string]Source{}
	}
	m[name] = src
	s.Sources = m
	return s
}

// WithDestination returns the settings with this entry among the destinations.
func (s Settings) WithDestination(name string, d Destination) Settings {
	m := maps.Clone(s.Destinations)
	if m == nil {
		m = map[string]Destination{}
	}
	m[name] = d
	s.Destinations = m
	return s
}
