// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

// E-09: while one message waits for its retry, the 49 others are done, with one
// worker and with four; it comes again when its time has come, five times in all.
func TestE09OneFailingMessageBlocksNone(t *testing.T) {
	t.Parallel()
	const (
		messages = 50
		first    = 8 * time.Second // the others are done meanwhile
		further  = 500 * time.Millisecond
	)
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	type registration struct {
		name    string
		workers int
	}
	var all []registration
	for _, k := range kinds {
		for _, workers := range []int{1, 4} {
			all = append(all, registration{fmt.Sprintf("%s-%d", k.name, workers), workers})
			set = set.With(fmt.Sprintf("%s-%d", k.name, workers), k.caps)
		}
	}
	in := b.attach(s, "mem", set)
	runs := newTally()
	for i, r := range all {
		rules := append(backTo(in, r.name, kinds[i/2].caps), host.MaxAttempts(5), host.Workers(r.workers))
		host.Handle(in.Subscription(r.name), func(_ context.Context, m *host.Message[[]byte]) error {
			p := string(m.Value)
			runs.ran(r.name+" "+p, m.Attempt())
			if p == "m01" {
				if m.Attempt() > 1 {
					return host.RetryAfter(further, nil)
				}
				return host.RetryAfter(first, nil)
			}
			return nil
		}, rules...)
	}
	s.serve()
	for _, r := range all {
		for i := range messages {
			b.Publish(r.name, memory.Text(fmt.Sprintf("m%02d", i+1)))
		}
	}
	for _, r := range all {
		eventually(t, r.name+" has tried m01 five times", func() bool { return runs.runs(r.name+" m01") == 5 })
	}
	s.stops()
	for _, r := range all {
		at := runs.times(r.name + " m01")
		for i := 1; i < len(at); i++ {
			least := further
			if i == 1 {
				least = first
			}
			if gap := at[i].Sub(at[i-1]); gap < least-5*time.Millisecond {
				t.Errorf("%s: m01 came again after %v, want %v", r.name, gap, least)
			}
		}
		for i := 2; i <= messages; i++ {
			p := fmt.Sprintf("m%02d", i)
			done := runs.times(r.name + " " + p)
			if len(done) != 1 {
				t.Errorf("%s: %s ran %d times", r.name, p, len(done))
			} else if done[0].After(at[1]) {
				t.Errorf("%s: %s was done %v after the first failure, behind the retry", r.name, p, done[0].Sub(at[0]))
			}
		}
	}
}
