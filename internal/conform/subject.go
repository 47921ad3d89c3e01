// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Placeholders in names, options and settings.
const (
	// CaseWord stands for a word of its own for each case.
	CaseWord = "{case}"
	// DirWord stands for a folder of its own for each case, removed behind it.
	DirWord = "{dir}"
)

// Place is where a case's messages go or come from.
type Place struct {
	Name string // of the subscription or destination, placeholders filled in
	Dir  string // the case's folder
	// Settings are what the case's plugin got, as JSON, placeholders filled in and
	// secrets written out.
	Settings []byte
	// Stdin is the writing end of the plugin's standard input and Stdout the
	// reading end of its standard output, where the plugin wants them, else nil.
	Stdin, Stdout *os.File
}

// Subject is what is to be proved: a plugin, its settings, and the way to reach
// what is behind it. Zero fields have defaults.
type Subject struct {
	Path     string   // the plugin's binary
	Settings any      // a settings struct, a map, or JSON; nil is {}
	Env      []string // names of the environment passed on to the plugin

	// Subscription is what is read; default "conform-{case}". Where no placeholder
	// stands in it, in Destination, Settings or Options, cases run one at a time, and
	// each begins by acking whatever lies there.
	Subscription string
	Options      any // of the subscription
	// SendOnly leaves the subscription out: nothing is read, as by a service that
	// only publishes or only asks.
	SendOnly    bool
	Destination string // what is published to; default the subscription's name
	SendOptions any    // of each message published

	// Inject puts messages where the subscription reads them, in order, and
	// returns when the transport has them. nil: they are published through the
	// plugin, whose destination must return to the subscription.
	Inject func(ctx context.Context, at Place, messages []core.Message) error
	// Collect reads what reaches the destination and calls got with each message,
	// until ctx ends; it calls ready once, as soon as nothing published from then
	// on is missed. nil: they are read through the plugin.
	Collect func(ctx context.Context, at Place, ready func(), got func(core.Message)) error
	// Disconnect cuts the plugin's connection to its transport, which takes a new
	// one right away. nil: cases that need it are not run.
	Disconnect func(ctx context.Context, at Place) error
	// Restart restarts the transport itself, and returns when it takes connections
	// again. nil: the case that needs it is not run.
	Restart func(ctx context.Context, at Place) error
	// Stalled is the name of a destination that takes nothing and answers nothing.
	// "": the case that needs it is not run.
	Stalled string
	// Echo is the name of a destination that answers each request with its payload.
	// "": the case that needs it is not run.
	Echo string

	Wait    time.Duration // the longest that anything may take; default 1 min
	Quiet   time.Duration // how long nothing may come where nothing may come; default 500 ms
	Late    time.Duration // the latest that something delayed may come after its time; default 10 s
	MaxHold time.Duration // cases that outlast a longer hold are not run; default 1 min
}

// The defaults of Subject.
const (
	DefaultSubscription = "conform-" + CaseWord
	DefaultWait         = time.Minute
	DefaultQuiet        = 500 * time.Millisecond
	DefaultLate         = 10 * time.Second
	DefaultMaxHold      = time.Minute
)

// apart reports whether each case has messages of its own: by a name, or by
// settings or options, in which a placeholder stands.
func (s Subject) apart() bool {
	texts := []string{s.Subscription, s.Destination}
	for _, v := range []any{s.Settings, s.Options} {
		if raw, err := encode("settings", v); err == nil {
			texts = append(texts, string(raw))
		}
	}
	all := strings.Join(texts, "\n")
	return strings.Contains(all, CaseWord) || strings.Contains(all, DirWord)
}

// withDefaults fills in what is zero.
func (s Subject) withDefaults() Subject {
	if s.Subscription == "" {
		s.Subscription = DefaultSubscription
	}
	if s.Destination == "" {
		s.Destination = s.Subscription
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&s.Wait, DefaultWait}, {&s.Quiet, DefaultQuiet}, {&s.Late, DefaultLate}, {&s.MaxHold, DefaultMaxHold}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return s
}
