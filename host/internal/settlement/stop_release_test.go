// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// said are the verdicts that a plugin was given, as "delivery verdict".
func (p *plugin) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, v := range p.verdicts {
		kind := "verdict"
		if v.Kind == core.VerdictRelease {
			kind = "release"
		}
		out = append(out, fmt.Sprintf("%d %s", v.First, kind))
	}
	slices.Sort(out)
	return out
}

// A stop releases what a handler was given and has not settled, and says nothing
// of what none has begun, or one has put off: a source that counts can tell them
// apart.
func TestStopReleasesWhatHandlersWereGiven(t *testing.T) {
	const limit = 10 * time.Second
	refused := func(s *setup) {
		s.o.Policy.MaxAttempts = 3
		s.plugin = func(p *plugin) {
			p.receipt = func(*frame.Outgoing, int) (frame.Receipt, bool) {
				return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Transient: true}}, true
			}
		}
	}
	deaf := func(s *setup) {
		s.o.Handle = func(context.Context, *Delivery) Said {
			time.Sleep(time.Hour)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}
	}
	slow := func(said Said) func(*Delivery) Said {
		return func(*Delivery) Said {
			time.Sleep(time.Second)
			return said
		}
	}
	for name, tt := range map[string]struct {
		caps   core.Capabilities
		handle func(*Delivery) Said
		change func(*setup)
		want   []string // of three deliveries
	}{
		"handled": {
			caps: kindA, handle: slow(Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}),
			want: []string{"1 verdict"},
		},
		"left": {
			caps: kindA, handle: slow(Said{Outcome: core.Outcome{Kind: core.OutcomeLeave}}),
			want: []string{"1 release"},
		},
		"cancelled": {
			caps: kindA, change: func(s *setup) {
				s.o.Handle = func(ctx context.Context, _ *Delivery) Said {
					<-ctx.Done()
					return Said{Outcome: retry(), Err: ctx.Err()}
				}
			},
			want: []string{"1 release"},
		},
		"not returned":                     {caps: kindA, change: deaf, want: []string{"1 release"}},
		"not returned, and would be lost":  {caps: kindU, change: deaf, want: []string{"2 release", "3 release"}},
		"put off":                          {caps: kindA, handle: snoozes(1, time.Minute), change: snoozable},
		"put off meanwhile":                {caps: kindA, handle: slow(snoozes(1, time.Minute)(&Delivery{})), change: snoozable},
		"put off, and would be lost":       {caps: kindU, handle: snoozes(1, time.Minute), change: snoozable, want: []string{"1 release", "2 release", "3 release"}},
		"held":                             {caps: kindC, handle: says(later(time.Minute)), want: []string{"1 release", "2 release", "3 release"}},
		"its copy is refused":              {caps: kindA, handle: says(retry()), change: refused, want: []string{"1 release", "2 release", "3 release"}},
		"gathered for a batch":             {caps: kindA, change: inBatches(&batches{}, 10, time.Minute)},
		"its copy is refused, and no acks": {caps: kindU, handle: says(retry()), change: refused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, tt.handle, func(s *setup) {
					if tt.change != nil {
						tt.change(s)
					}
				})
				synctest.Wait()
				for range 3 {
					m := message("x")
					m.Attempt = 1
					b.p.deliver(m)
				}
				synctest.Wait()
				b.stop(limited(t, limit))
				synctest.Wait()
				if diff := cmp.Diff(tt.want, b.p.said()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
