// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// keyed is one way to read two keys whose messages come in turn.
type keyed struct {
	name  string
	caps  core.Capabilities
	byKey bool        // with four workers
	rules []host.Rule // beside a way back for copies
}

// declare declares the subscription of k.
func (k keyed) declare(in *host.Endpoint, handle host.Handler[[]byte]) {
	host.Handle(in.Subscription("orders", host.Window(2*len(twoKeys), 0)), handle,
		append(backTo(in, "orders", k.caps), k.rules...)...)
}

// twoKeys are 50 messages of each of two keys, in turn.
var twoKeys = func() (names []string) {
	for i := range 50 {
		names = append(names, fmt.Sprintf("a%02d", i+1), fmt.Sprintf("b%02d", i+1))
	}
	return names
}()

// sequence notes what is handled, in order.
type sequence struct {
	mu  sync.Mutex
	all []string
}

func (s *sequence) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, name)
}

// of returns the messages of one key.
func of(key byte) func(string) bool { return func(name string) bool { return name[0] == key } }

// explained returns what Explain says of the order after a retry of a first
// attempt.
func (k keyed) explained(t *testing.T, b *bench, set settings.Settings) string {
	t.Helper()
	s := newService(t)
	k.declare(b.attach(s, "mem", set), func(context.Context, *host.Message[[]byte]) error { return nil })
	tables, err := s.Explain(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return afterRetry(t, tables)
}

// afterRetry is the order of the row of a retry.
func afterRetry(t *testing.T, tables []core.Table) string {
	t.Helper()
	for _, r := range tables[0].Profiles[0].Rows {
		if r.Outcome == "retry" {
			return r.Order
		}
	}
	t.Fatalf("no row of a retry in %v", tables)
	return ""
}

// E-15: first deliveries come in order, within each key and, with one worker,
// over both. Number 10 of key a, which fails twice, comes again where Explain
// says, and key b is not disturbed.
func TestE15OrderAroundARetry(t *testing.T) {
	t.Parallel()
	var all []keyed
	for _, k := range kinds {
		capped := []host.Rule{host.MaxAttempts(5), host.DeadLetterTo(core.Destination{Name: "graves"})}
		all = append(all,
			keyed{name: k.name, caps: k.caps, rules: capped},
			keyed{name: k.name + " by key", caps: k.caps, byKey: true, rules: append(slices.Clone(capped), host.Workers(4), host.ByKey())})
	}
	all = append(all, keyed{name: "C without a cap", caps: settings.KindC()})
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			set := b.Settings.With("orders", k.caps)
			said := k.explained(t, b, set)
			s := newService(t)
			seen, runs := &sequence{}, newTally()
			there := make(chan struct{})
			k.declare(b.attach(s, "mem", set), func(_ context.Context, m *host.Message[[]byte]) error {
				<-there
				p := string(m.Value)
				seen.add(p)
				runs.ran(p, m.Attempt())
				if p == "a10" && runs.runs(p) < 3 {
					return host.Retry(nil)
				}
				return nil
			})
			for _, p := range twoKeys {
				b.Publish("orders", memory.Message{
					Payload: []byte(p), Headers: core.Headers{{Name: "partition-key", Value: []byte(p[:1])}},
				})
			}
			s.serve()
			b.must(b.WaitDelivered(b.ctx, "orders", len(twoKeys))) // so that all of it is under way
			close(there)
			eventually(t, "a10 is done", func() bool { return runs.runs("a10") == 3 })
			b.must(b.WaitIdle(b.ctx, "orders"))
			s.stops()
			if diff := cmp.Diff([]uint64{1, 2, 3}, runs.attempts("a10")); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			for _, p := range twoKeys {
				if n := runs.runs(p); n != 1 && p != "a10" {
					t.Errorf("%s ran %d times", p, n)
				}
			}
			k.check(t, said, seen.all)
		})
	}
}

// check compares what was handled with what Explain has said.
func (k keyed) check(t *testing.T, said string, seen []string) {
	t.Helper()
	together := []func(string) bool{of('a'), of('b')}
	if !k.byKey {
		together = append(together, func(string) bool { return true })
	}
	for _, keep := range together {
		var firsts []string
		again := false // a10
		for _, name := range seen {
			switch {
			case !keep(name):
			case !slices.Contains(firsts, name):
				firsts = append(firsts, name)
				if again {
					t.Errorf("%s comes behind the second a10, of which Explain says: %s", name, said)
				}
			default:
				again = true
			}
		}
		want := slices.DeleteFunc(slices.Clone(twoKeys), func(n string) bool { return !keep(n) })
		if diff := cmp.Diff(want, firsts); diff != "" {
			t.Errorf("first deliveries (-want +got):\n%s", diff)
		}
	}
	if !slices.Contains(behind, said) {
		t.Errorf("Explain says: %s", said)
	}
}

// behind are the words of Explain for a message that comes again behind all that
// was under way with it.
var behind = []string{"the copy joins the tail of its destination", "comes back behind those under way", "the copy comes behind those under way"}
