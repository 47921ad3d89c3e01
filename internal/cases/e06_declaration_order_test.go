// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

// E-06: with a cap of 3, a dead letter and a retry after 200 ms there are three
// runs, 200 ms apart, before the dead letter, in whatever order the rules stand,
// for raw and typed handlers, whether the handler or the rule says how long.
func TestE06RulesInEveryOrder(t *testing.T) {
	t.Parallel()
	const delay = 200 * time.Millisecond
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	type registration struct {
		name  string
		caps  core.Capabilities
		least time.Duration
	}
	var all []registration
	for _, k := range kinds {
		for _, how := range []string{"returned", "backoff"} {
			for _, form := range []string{"raw", "typed"} {
				for i := range permutations(3) {
					r := registration{fmt.Sprintf("%s-%s-%s-%d", k.name, how, form, i), k.caps, delay}
					if how == "backoff" {
						r.least = delay / 2 // jitter takes up to half away
					}
					set = set.With(r.name, k.caps)
					all = append(all, r)
				}
			}
		}
	}
	in := b.attach(s, "mem", set)
	runs := newTally()
	for i, r := range all {
		// The third rule declares the delay, or something without effect here.
		third, outcome := host.Backoff(host.Constant(delay).Jitter(0.5)), host.Retry(nil)
		if r.least == delay {
			third, outcome = host.Timeout(time.Minute), host.RetryAfter(delay, nil)
		}
		declared := []host.Rule{host.MaxAttempts(3), host.DeadLetterTo(in.To("dead-" + r.name)), third}
		rules := backTo(in, r.name, r.caps)
		for _, j := range permutations(3)[i%6] {
			rules = append(rules, declared[j])
		}
		if typed := i/6%2 == 1; typed {
			host.Handle(in.Subscription(r.name), func(_ context.Context, m *host.Message[order]) error {
				runs.ran(r.name, m.Attempt())
				return outcome
			}, rules...)
		} else {
			host.Handle(in.Subscription(r.name), func(_ context.Context, m *host.Message[[]byte]) error {
				runs.ran(r.name, m.Attempt())
				return outcome
			}, rules...)
		}
	}
	s.serve()
	text, _ := json.Marshal(order{7})
	for _, r := range all {
		b.Publish(r.name, memory.Message{Payload: text})
	}
	for _, r := range all {
		b.must(b.WaitPublished(b.ctx, "dead-"+r.name, 1))
		b.must(b.WaitIdle(b.ctx, r.name))
	}
	s.stops()
	for _, r := range all {
		if diff := cmp.Diff([]uint64{1, 2, 3}, runs.attempts(r.name)); diff != "" {
			t.Errorf("%s: attempts (-want +got):\n%s", r.name, diff)
		}
		at := runs.times(r.name)
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < r.least-5*time.Millisecond || gap > delay+late {
				t.Errorf("%s: run %d came after %v, want %v", r.name, i+1, gap, delay)
			}
		}
		if n := len(b.Published("dead-" + r.name)); n != 1 {
			t.Errorf("%s: %d dead letters", r.name, n)
		}
	}
}

// permutations returns all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			q := append(append(append([]int{}, p[:at]...), n-1), p[at:]...)
			out = append(out, q)
		}
	}
	return out
}
