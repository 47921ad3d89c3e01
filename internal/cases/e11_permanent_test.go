// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

var errClosed = errors.New("account is closed")

// E-11: a permanent failure is one run. Drop leaves no copy; DeadLetter sends
// the message to the dead letter at once, with attempts 1 and the reason, and
// without a declared dead letter drops it with a warning. So does an error that is
// never retried, which goes the way of the cap.
func TestE11PermanentFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	for _, k := range kinds {
		set = set.With("orders-"+k.name, k.caps).With("bare-"+k.name, k.caps)
	}
	in := b.attach(s, "mem", set)
	runs := newTally()
	for _, k := range kinds {
		for _, name := range []string{"orders-" + k.name, "bare-" + k.name} {
			rules := append(backTo(in, name, k.caps), host.MaxAttempts(5), host.OnError(host.Is(errClosed), host.NeverRetry))
			if name == "orders-"+k.name {
				rules = append(rules, host.DeadLetterTo(in.To("dead-"+k.name)))
			}
			host.Handle(in.Subscription(name), func(_ context.Context, m *host.Message[[]byte]) error {
				runs.ran(name+" "+string(m.Value), m.Attempt())
				switch string(m.Value) {
				case "bad":
					return host.Drop(errors.New("no such customer"))
				case "closed":
					return fmt.Errorf("handle order: %w", errClosed)
				case "poison":
					return fmt.Errorf("handle order: %w", host.DeadLetter(errors.New("no such customer")))
				}
				return nil
			}, rules...)
			b.Publish(name, memory.Text("bad"), memory.Text("poison"), memory.Text("closed"), memory.Text("good"))
		}
	}
	s.serve()
	for _, k := range kinds {
		b.must(b.WaitPublished(b.ctx, "dead-"+k.name, 2))
	}
	b.must(b.WaitIdle(b.ctx, append(names("orders-"), names("bare-")...)...))
	s.stops()
	for _, k := range kinds {
		for _, name := range []string{"orders-" + k.name, "bare-" + k.name} {
			for _, p := range []string{"bad", "poison", "closed", "good"} {
				if n := runs.runs(name + " " + p); n != 1 {
					t.Errorf("%s: %d runs of %s", name, n, p)
				}
			}
			if a := b.Account(name); a.Published != 4 || a.Deliveries != 4 || a.Lost != 0 {
				t.Errorf("%s: %v, want no copy", name, a)
			}
		}
		var got []string
		for _, m := range b.Published("dead-" + k.name) {
			attempts, _ := m.Header("x-longshore-attempts")
			reason, _ := m.Header("x-longshore-reason")
			from, _ := m.Header("x-longshore-subscription")
			got = append(got, fmt.Sprintf("%s %s %s: %s", m.Payload, from, attempts, reason))
		}
		slices.Sort(got)
		want := []string{
			"closed orders-" + k.name + " 1: handle order: account is closed",
			"poison orders-" + k.name + " 1: handle order: no such customer",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: dead letters (-want +got):\n%s", k.name, diff)
		}
		if n := len(s.log.of("L-REF", "bare-"+k.name)); n != 1 {
			t.Errorf("%s: %d warnings of a dead letter that is not declared", k.name, n)
		}
		if n := len(s.log.of("L-CAP-RJ", "bare-"+k.name)); n != 1 {
			t.Errorf("%s: %d warnings of an error that is never retried", k.name, n)
		}
		if n := len(s.log.of("L-ERR", "orders-"+k.name)); n != 3 {
			t.Errorf("%s: %d lines about what the handler returned, want 3", k.name, n)
		}
	}
}
