// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// tally has every lane of a bench told what it has finished, so that every test
// checks the books of it.
func (b *bench) tally(o *LaneOptions) {
	handle, told := o.Handle, o.Finished
	ran := func(n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ran += n
	}
	o.Handle = func(ctx context.Context, d *Delivery) Said {
		if d.Snoozes == 0 {
			ran(1)
		}
		return handle(ctx, d)
	}
	if o.Batch != nil {
		batch := *o.Batch
		o.Batch.Open = func(ctx context.Context, d *Delivery) (said Said, ok bool) {
			defer func() {
				if !ok && d.Snoozes == 0 {
					ran(1)
				}
			}()
			return batch.Open(ctx, d)
		}
		o.Batch.Handle = func(ctx context.Context, ds []*Delivery, said []Said) int {
			for _, d := range ds {
				if d.Snoozes == 0 {
					ran(1)
				}
			}
			return batch.Handle(ctx, ds, said)
		}
	}
	o.Finished = func(f *Finished) {
		_, _ = b.lane.Counters(), b.waiting.Len() // a lock that is held would not let them
		b.mu.Lock()
		b.finished = append(b.finished, *f)
		b.mu.Unlock()
		if told != nil {
			told(f)
		}
	}
	if o.Keep == nil {
		o.Keep = func(*Said, *core.Plan) bool { return true }
	}
}

// checkTally compares what was told with what was begun and with the counters.
func (b *bench) checkTally(c Counters) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var told Counters
	over := 0
	for i := range b.finished {
		f := &b.finished[i]
		told.add(f.Result)
		if f.Lost {
			told.Lost++
		}
		if f.Over {
			over++
		}
	}
	if n := len(b.finished) - over; n != b.ran {
		b.t.Errorf("%d deliveries are finished, %d were begun", n, b.ran)
	}
	if told.Released > c.Released || told.Stale > c.Stale {
		b.t.Errorf("finished %+v, the lane has %+v", told, c)
	}
	told.Received, told.Released, told.Stale, told.Failed, told.Reports = c.Received, c.Released, c.Stale, c.Failed, c.Reports
	if diff := cmp.Diff(told, c); diff != "" {
		b.t.Errorf("finished and counted differ: %s", diff)
	}
}

// results are what was told so far.
func (b *bench) results() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for i := range b.finished {
		f := &b.finished[i]
		text := fmt.Sprintf("%s %d in %v", f.Delivery.Message.Payload, f.Result, f.Took)
		if f.Lost {
			text += ", lost"
		}
		if f.Over {
			text += ", over"
		}
		if f.Plan == nil {
			text += ", no plan"
		}
		out = append(out, text)
	}
	return out
}

// A delivery is finished once, at the end of its settlement, with what became of
// it and how long it took.
func TestFinished(t *testing.T) {
	broken := errors.New("broken")
	refuse := func(p *plugin) {
		p.receipt = func(*frame.Outgoing, int) (frame.Receipt, bool) {
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no rights"}}, true
		}
	}
	tests := map[string]struct {
		caps   core.Capabilities
		said   Said
		change func(*setup)
		do     func(b *bench)
		want   []string
	}{
		"ack":        {caps: kindA, said: Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}, want: []string{"x 0 in 0s"}},
		"copy":       {caps: kindA, said: Said{Outcome: retry(), Err: broken}, change: func(s *setup) { s.o.Policy.MaxAttempts = 3 }, want: []string{"x 1 in 0s"}},
		"waits":      {caps: kindA, said: Said{Outcome: later(time.Minute), Err: broken}, want: []string{"x 1 in 1m0s"}},
		"waits long": {caps: kindA, said: Said{Outcome: later(24 * time.Hour), Err: broken}},
		"held": {
			caps: kindA, said: Said{Outcome: retry(), Err: broken},
			change: func(s *setup) { s.o.Policy.MaxAttempts = 3; s.plugin = refuse },
			want:   []string{"x 1 in 1s"}, // S-GEN-74
		},
		"lost": {
			caps: kindA, said: Said{Outcome: later(time.Minute), Err: broken}, change: func(s *setup) { s.plugin = refuse },
			want: []string{"x 2 in 1m0s, lost"}, // S-GEN-40
		},
		"over the cap": { // S-GEN-96
			caps: kindC, change: func(s *setup) { s.o.Policy.MaxAttempts = 3 }, want: []string{"x 2 in 0s, over"},
		},
		"void": {
			caps: kindA, said: Said{Outcome: retry(), Err: broken},
			change: func(s *setup) {
				s.o.Policy.MaxAttempts = 3
				s.plugin = func(p *plugin) { p.receipt = none }
			},
			do:   func(b *bench) { b.p.void(&transportpb.Void{All: true, Returns: true}) },
			want: []string{"x 6 in 1m0s"}, // what is sent is waited for
		},
		"stopped while it waits": {
			caps: kindA, said: Said{Outcome: later(time.Minute), Err: broken},
			do:   func(b *bench) { b.stop(limited(b.t, time.Second)) },
			want: []string{"x 2 in 1s, lost"}, // S-GEN-42
		},
		"publishes cut": {
			caps: kindA, said: Said{
				Outcome:   core.Outcome{Kind: core.OutcomeAck},
				Publishes: []Publish{{To: core.Destination{Endpoint: "in", Name: "next"}}},
			},
			change: func(s *setup) { s.plugin = func(p *plugin) { p.receipt = none } },
			do:     func(b *bench) { b.stop(limited(b.t, time.Second)) },
			want:   []string{" 5 in 1s, no plan"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				change := func(*setup) {}
				if tt.change != nil {
					change = tt.change
				}
				b := newBench(t, tt.caps, func(*Delivery) Said { return tt.said }, change)
				synctest.Wait()
				m := message("x")
				m.Attempt = 4
				b.p.deliver(m)
				synctest.Wait()
				if tt.do != nil {
					tt.do(b)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if diff := cmp.Diff(tt.want, b.results()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The message is kept where the plan is asked about, and nothing of it where it
// is not.
func TestFinishedKeepsTheMessage(t *testing.T) {
	for name, kept := range map[string]bool{"kept": true, "not kept": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, says(retry()), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.o.Keep = func(_ *Said, p *core.Plan) bool { return kept && targets(p, core.TargetRetry) }
				})
				synctest.Wait()
				m := message("payload", "x-a", "1")
				m.Scope, m.Identity, m.Position = "s", []byte("i"), []byte("p")
				b.p.deliver(m)
				synctest.Wait()
				if len(b.finished) != 1 {
					t.Fatalf("finished %v", b.finished)
				}
				d := b.finished[0].Delivery
				want := Delivery{Number: 1, Received: d.Received}
				if kept {
					want.Message, want.Scope, want.Identity, want.Position = m.Message, m.Scope, m.Identity, m.Position
				}
				if diff := cmp.Diff(want, d); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
