// SPDX-License-Identifier: Apache-2.0

// Package plugintest proves in a Go test that a transport plugin keeps the
// promises of the protocol. It runs the built binary, whatever language it is
// written in, as a host does; `longshore conform` runs the same cases from the
// command line.
//
//	func TestConformance(t *testing.T) {
//		plugintest.Run(t, plugintest.Subject{
//			Path:     plugintest.Build(t, "queue", "."),
//			Settings: map[string]any{"address": startBroker(t)},
//		})
//	}
//
// # Caveats
//
// It starts and kills processes, also one that acts as a host, which it builds
// with the go command. Cases run beside each other, each with names of its own.
package plugintest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/card"
)

// Placeholders that are filled in, for each case, in names and in every text of
// settings and options.
const (
	// CaseWord stands for a word that no other case and no other run has.
	CaseWord = conform.CaseWord
	// DirWord stands for a folder of the case's own, removed behind it.
	DirWord = conform.DirWord
)

// Place is where the messages of one case go or come from.
type Place struct {
	Name string // of the subscription or the destination
	Dir  string // the case's folder
	// Settings are what the case's plugin got, as JSON, placeholders filled in and
	// secrets written out.
	Settings []byte
	// Stdin is the writing end of the plugin's standard input and Stdout the
	// reading end of its standard output, where the plugin wants them, else nil.
	Stdin, Stdout *os.File
}

// Subject is a plugin with what is needed to try it. Only Path is required.
type Subject struct {
	// Path is the plugin's binary, named longshore-transport-<name>.
	Path string
	// Settings of the endpoint: a settings struct, a map, or a json.RawMessage;
	// nil is {}. Lease times and the like should be short, since cases wait for
	// them.
	Settings any
	// Env names variables of the environment that the plugin is given.
	Env []string

	// Subscription is what is read; default "conform-{case}". Options are its own.
	Subscription string
	Options      any
	// SendOnly leaves the subscription out: nothing is read, as by a service that
	// only publishes or only asks.
	SendOnly bool
	// Destination is what is published to; default the subscription's name.
	// SendOptions are those of each message.
	Destination string
	SendOptions any

	// Inject puts messages where the subscription reads them, in order, and
	// returns once the transport has them. nil: they are published through the
	// plugin, whose Inspect must say that the destination returns to the
	// subscription. It may be called from several goroutines.
	Inject func(ctx context.Context, at Place, messages []core.Message) error
	// Collect reads what reaches the destination and calls got with each message,
	// until ctx ends; it calls ready once, as soon as nothing published from then
	// on is missed. nil: they are read through the plugin.
	Collect func(ctx context.Context, at Place, ready func(), got func(core.Message)) error
	// Disconnect cuts the plugin's connection to its transport, which takes a new
	// one at once. nil: the case that needs it is not run.
	Disconnect func(ctx context.Context, at Place) error
	// Restart restarts the transport itself, and returns when it takes connections
	// again. nil: the case that needs it is not run.
	Restart func(ctx context.Context, at Place) error
	// Stalled names a destination that takes nothing and answers nothing. "": the
	// case that needs it is not run.
	Stalled string
	// Echo names a destination that answers each request with its payload. "": the
	// case that needs it is not run.
	Echo string

	Wait    time.Duration // the longest that anything may take; default 1 min
	Quiet   time.Duration // how long nothing may come where nothing may come; default 500 ms
	Late    time.Duration // the latest that something delayed may come; default 10 s
	MaxHold time.Duration // cases that outlast a longer hold are not run; default 1 min
}

// subject is what the suite takes.
func (s Subject) subject() conform.Subject {
	c := conform.Subject{
		Path: s.Path, Settings: s.Settings, Env: s.Env,
		Subscription: s.Subscription, Options: s.Options, SendOnly: s.SendOnly, Destination: s.Destination, SendOptions: s.SendOptions,
		Stalled: s.Stalled, Echo: s.Echo,
		Wait: s.Wait, Quiet: s.Quiet, Late: s.Late, MaxHold: s.MaxHold,
	}
	if f := s.Inject; f != nil {
		c.Inject = func(ctx context.Context, at conform.Place, messages []core.Message) error {
			return f(ctx, Place(at), messages)
		}
	}
	if f := s.Disconnect; f != nil {
		c.Disconnect = func(ctx context.Context, at conform.Place) error { return f(ctx, Place(at)) }
	}
	if f := s.Restart; f != nil {
		c.Restart = func(ctx context.Context, at conform.Place) error { return f(ctx, Place(at)) }
	}
	if f := s.Collect; f != nil {
		c.Collect = func(ctx context.Context, at conform.Place, ready func(), got func(core.Message)) error {
			return f(ctx, Place(at), ready, got)
		}
	}
	return c
}

// Option tunes a run.
type Option func(*options)

type options struct {
	only  *regexp.Regexp
	cards []string
}

// Only runs the cases whose id matches, such as "^settle/".
func Only(id *regexp.Regexp) Option { return func(o *options) { o.only = id } }

// Card writes the capability card, once all cases have run, to each path: as
// JSON where it ends in .json, else as Markdown.
func Card(paths ...string) Option {
	return func(o *options) { o.cards = append(o.cards, paths...) }
}

// Run runs the cases that apply to the subject. Each is a subtest that fails
// with what the plugin did wrong; one that does not apply, or that the subject
// lacks something for, is skipped with the reason. t fails at once where there
// is no plugin, where it refuses the settings or does not connect.
func Run(t *testing.T, s Subject, opts ...Option) {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	run := conform.Options{
		Host:     sync.OnceValues(func() ([]string, error) { return buildHost(t) }),
		Progress: func(r conform.Result) { t.Logf("%-14s %s", r.Status, r.Case) },
	}
	if o.only != nil {
		run.Only = o.only.MatchString
	}
	report, err := conform.Run(t.Context(), s.subject(), run)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		t.Run(r.Case, func(t *testing.T) { tell(t, r) })
	}
	for _, path := range o.cards {
		if err := card.From(report).Write(path); err != nil {
			t.Error(err)
		}
	}
}

// tell makes a subtest of a result.
func tell(t *testing.T, r conform.Result) {
	for _, n := range r.Notes {
		t.Log(n)
	}
	switch r.Status {
	case conform.NotApplicable, conform.NotRun:
		t.Skip(string(r.Status) + ": " + r.Reason)
	case conform.Failed:
		t.Logf("%s (docs/protocol.md, %s)", r.Claim, r.Section)
		for _, f := range r.Faults {
			t.Error(f)
		}
		if len(r.Log) > 0 {
			t.Logf("the plugin's log ends with\n\t%s", strings.Join(r.Log, "\n\t"))
		}
	}
}

// hostPackage acts as a host that is killed.
const hostPackage = "github.com/longshore-go/longshore/internal/conform/longshore-conform-host"

// buildHost builds the host that is killed.
func buildHost(t *testing.T) ([]string, error) {
	path := filepath.Join(t.TempDir(), filepath.Base(hostPackage))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, hostPackage).CombinedOutput()
	if err != nil {
		return nil, errors.New("build it with the go command: " + err.Error() + "\n" + string(out))
	}
	return []string{path}, nil
}
