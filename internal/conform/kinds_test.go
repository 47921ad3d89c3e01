// SPDX-License-Identifier: Apache-2.0

package conform_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// kind is one kind of source of the memory transport.
type kind struct {
	name string
	// source is what every subscription can do.
	source settings.Source
	// inject feeds messages past the plugin, their profiles in turn.
	inject bool
	cut    bool // connections are cut
	// only are the cases by which it differs from others, by the beginnings of
	// their ids; nil = areas.
	only []string
}

// source returns a source of these capabilities.
func source(profiles ...core.Capabilities) settings.Source {
	var src settings.Source
	for _, c := range profiles {
		src.Profiles = append(src.Profiles, settings.ProfileOf(c))
	}
	return src
}

// with returns c as change leaves it.
func with(c core.Capabilities, change func(c *core.Capabilities)) core.Capabilities {
	change(&c)
	return c
}

// hold is the lease of kinds that have one: cases wait for its end.
const hold = 1500 * time.Millisecond

func lease(c *core.Capabilities) { c.MaxHold = hold }

func kinds() []kind {
	held := source(settings.KindC())
	held.Held = true
	heldLease := source(with(settings.KindA(), lease))
	heldLease.Held = true
	late := source(settings.KindC())
	late.LateAcks = true
	anonymous := source(settings.KindD())
	anonymous.NoIdentity = true
	raw := source(settings.KindK())
	raw.Raw = true
	return []kind{
		{name: "A", source: source(settings.KindA()), cut: true},
		{name: "B", source: source(with(settings.KindB(), func(c *core.Capabilities) { c.MaxDelay = 10 * time.Second }))},
		{name: "C", source: source(settings.KindC()), cut: true},
		{name: "D", source: anonymous, cut: true},
		{name: "K", source: source(settings.KindK()), cut: true},
		{name: "K-raw", source: raw, only: []string{"settle/", "honesty/forgets", "unsettled/"}},
		{name: "M", source: source(settings.KindM()), cut: true},
		{name: "T", source: source(with(settings.KindT(), func(c *core.Capabilities) { c.MaxHold, c.Extend, c.Counts = hold, true, core.CountNative }))},
		{name: "T-cut", source: source(with(settings.KindT(), lease)), cut: true},
		{name: "U", source: source(settings.KindU()), cut: true},
		{name: "lost", source: source(with(settings.KindC(), func(c *core.Capabilities) { c.Unsettled = core.UnsettledLost })), cut: true},
		{name: "held", source: held, cut: true},
		{name: "held-lease", source: heldLease, only: []string{"settle/", "honesty/", "unsettled/"}},
		{name: "late", source: late, cut: true, only: []string{"settle/twice", "settle/unknown", "unsettled/"}},
		{name: "dead-letters", source: source(with(settings.KindC(), func(c *core.Capabilities) { c.Reject = core.RejectDeadLetters })), only: []string{"settle/reject", "settle/results"}},
		{name: "profiles", source: source(settings.KindC(), settings.KindU()), inject: true, cut: true},
		{name: "scopes", source: source(with(settings.KindK(), func(c *core.Capabilities) { c.Order = core.OrderPerScope })), inject: true},
	}
}

// areas are what differs from kind to kind.
var areas = []string{"settle/", "honesty/", "unsettled/", "credit/release", "copy/"}

// chosen reports whether a case is run on a kind.
func (k *kind) chosen(id string) bool {
	only := k.only
	if only == nil {
		only = areas
	}
	return slices.ContainsFunc(only, func(begin string) bool { return strings.HasPrefix(id, begin) })
}

// TestKinds runs the suite on every kind of source: an honest transport passes
// whatever it can do.
func TestKinds(t *testing.T) {
	places := make(chan struct{}, 3)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			runKind(t, k)
		})
	}
}

func runKind(t *testing.T, k kind) {
	b := memtest.Start(t)
	s := conform.Subject{
		Path: b.Path, Settings: b.Settings.WithSource(settings.Rest, k.source),
		Quiet: 200 * time.Millisecond, MaxHold: 2 * hold,
	}
	if k.inject {
		var mu sync.Mutex
		count := map[string]int{}
		s.Inject = func(_ context.Context, at conform.Place, ms []core.Message) error {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				n := count[at.Name]
				count[at.Name]++
				b.Publish(at.Name, memory.Message{
					Headers: m.Headers, Payload: m.Payload, Profile: uint32(n % len(k.source.Profiles)), Scope: []string{"left", "right"}[n%2],
				})
			}
			return nil
		}
	}
	if k.cut {
		s.Disconnect = func(context.Context, conform.Place) error {
			b.Down()
			b.Up()
			return nil
		}
	}
	s.Restart = func(context.Context, conform.Place) error {
		b.Restart()
		return nil
	}
	r, err := conform.Run(t.Context(), s, conform.Options{Only: k.chosen, Parallel: 8})
	if err != nil {
		t.Fatal(err)
	}
	honest(t, r)
}

// honest fails the test where a case failed, or none passed.
func honest(t *testing.T, r *conform.Report) {
	t.Helper()
	for _, c := range r.Results {
		if testing.Verbose() {
			t.Log(c.Status, c.Case, c.Time.Round(time.Millisecond), c.Reason, c.Notes)
		}
		for _, f := range c.Faults {
			t.Errorf("%s: %s\n%s", c.Case, f, strings.Join(c.Log, "\n"))
		}
	}
	if n := r.Count(conform.Passed); n == 0 {
		t.Errorf("of %d cases none passed", len(r.Results))
	}
}
