// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

// order is what a typed handler decodes.
type order struct {
	ID int `json:"id"`
}

// badOrders cannot be decoded: not finished, empty, of another type.
var badOrders = []string{`{`, ``, `{"id":"x"}`}

// E-01: a message that can never be decoded is dropped once, with a warning; with
// retry, cap and dead letter apply to it; the handler never sees it and ten good
// ones are handled.
func TestE01Undecodable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	for _, k := range kinds {
		set = set.With("default-"+k.name, k.caps).With("retry-"+k.name, k.caps)
	}
	in := b.attach(s, "mem", set)
	seen := newTally()
	for _, k := range kinds {
		for _, policy := range []string{"default-", "retry-"} {
			name := policy + k.name
			rules := backTo(in, name, k.caps)
			if policy == "retry-" {
				rules = append(rules, host.OnUndecodable(host.AsRetry), host.MaxAttempts(2), host.DeadLetterTo(in.To("dead-"+k.name)))
			}
			host.Handle(in.Subscription(name), func(_ context.Context, m *host.Message[order]) error {
				seen.ran(fmt.Sprintf("%s %d", name, m.Value.ID), m.Attempt())
				return nil
			}, rules...)
			for i := range 10 {
				b.Publish(name, memory.Text(fmt.Sprintf(`{"id":%d}`, i)))
				if i < len(badOrders) {
					b.Publish(name, memory.Text(badOrders[i]))
				}
			}
		}
	}
	s.serve()
	for _, k := range kinds {
		b.wait("three dead letters of "+k.name, func(v memory.View) bool { return len(v.Published("dead-"+k.name)) >= len(badOrders) })
	}
	b.must(b.WaitIdle(b.ctx, slices.Concat(names("default-"), names("retry-"))...))
	s.stops()
	for _, k := range kinds {
		for _, policy := range []string{"default-", "retry-"} {
			name := policy + k.name
			for i := range 10 {
				if n := seen.runs(fmt.Sprintf("%s %d", name, i)); n != 1 {
					t.Errorf("%s: good message %d was handled %d times", name, i, n)
				}
			}
			lines := s.log.of("L-DEC", name)
			want := len(badOrders)
			if policy == "retry-" {
				want *= 2 // one a try
			}
			if len(lines) != want {
				t.Errorf("%s: %d warnings, want %d", name, len(lines), want)
			}
			for _, l := range lines {
				if l.text("level") != "WARN" || l.text("error") == "" {
					t.Errorf("%s: line %v", name, l)
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(badOrders)), payloads(b.Published("dead-"+k.name))); diff != "" {
			t.Errorf("%s: dead letters (-want +got):\n%s", k.name, diff)
		}
		// The default drops: no copy, and rejected where the source can.
		if a := b.Account("default-" + k.name); a.Published != 13 || a.Deliveries != 13 || a.Lost != 0 ||
			k.name == "A" && a.Rejected != 3 || k.name == "M" && a.Acked != 13 {
			t.Errorf("default-%s: %v", k.name, a)
		}
	}
	if len(s.log.of("L-LOST", "")) > 0 {
		t.Error("something was lost")
	}
}

// names returns the queues with this prefix, one a kind.
func names(prefix string) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, prefix+k.name)
	}
	return out
}
