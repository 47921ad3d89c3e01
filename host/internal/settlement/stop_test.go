// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// limited is a stop's limit.
func limited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestStopWaitsForWaitingCopies(t *testing.T) {
	process := stored
	process.Retains = core.RetainProcess
	tests := map[string]struct { // S-GEN-41, 42, 94, S-ZMQ-34, S-FIL-20
		caps    core.Capabilities
		to      core.Publishing
		journal bool
		limit   time.Duration
		took    time.Duration
		lost    int
		sent    int
		rows    int
		want    string
	}{
		"no limit": {kindA, stored, false, 0, 10 * time.Minute, 0, 1, 0, "ACK; PUBLISH+10m(own,1)"},
		"limit":    {kindA, stored, false, 5 * time.Second, 5 * time.Second, 1, 0, 0, "ACK; PUBLISH+10m(own,1)=CUT"},
		"journal":  {kindA, stored, true, 0, 0, 0, 0, 1, "STORE(own,1,10m); ACK; PUBLISH+10m(own,1)=CUT"},
		"only this process would read it": {kindU, process, false, 0, 0, 1, 0, 0,
			"RELEASE; PUBLISH+10m(own,1)=CUT"},
		"only this process would read it, journal": {kindU, process, true, 0, 0, 0, 0, 1,
			"STORE(own,1,10m); RELEASE; PUBLISH+10m(own,1)=CUT"},
		"no acks": {kindU, stored, false, 0, 10 * time.Minute, 0, 1, 0, "RELEASE; PUBLISH+10m(own,1)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				b := newBench(t, tt.caps, says(later(10*time.Minute)), func(s *setup) {
					s.o.RetryTo = open("own", tt.to)
					if tt.journal {
						s.o.Journal = j
					}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				if n := b.waiting.Len(); n != 1 {
					t.Fatalf("%d copies wait", n)
				}
				start := time.Now()
				ctx := t.Context()
				if tt.limit > 0 {
					ctx = limited(t, tt.limit)
				}
				left, lost, missing := b.stop(ctx)
				if took := time.Since(start); took != tt.took {
					t.Errorf("the stop took %v, want %v", took, tt.took)
				}
				if !left.Empty() || missing != 0 {
					t.Errorf("left %+v, %d receipts", left, missing)
				}
				want := []WaitingCopies{}
				if tt.lost > 0 {
					want = []WaitingCopies{{Endpoint: "in", Subscription: "jobs", Count: tt.lost}}
				}
				if diff := cmp.Diff(want, lost); diff != "" {
					t.Error(diff)
				}
				if got := len(b.logs.lines("L-ABND")); got != tt.lost {
					t.Errorf("%d lines L-ABND", got)
				}
				if got := b.lane.Counters(); got.Lost != uint64(tt.lost) || got.InWork != 0 {
					t.Errorf("counters %+v", got)
				}
				if got := len(b.p.outgoing()); got != tt.sent {
					t.Errorf("%d were published", got)
				}
				if rows, _ := j.kept(); rows != tt.rows {
					t.Errorf("%d rows are kept: %v", rows, j.calls)
				}
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A copy to a destination that only this process reads does not leave while the
// process stops: nobody would read it.
func TestStopDoesNotPublishWhatNobodyReads(t *testing.T) { // D16
	for name, caps := range map[string]core.Capabilities{"kept by the source": kindA, "lost": kindU} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, caps, func(*Delivery) Said {
					time.Sleep(time.Second)
					return Said{Outcome: retry()}
				}, func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.o.RetryTo.Caps.Retains = core.RetainProcess
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				left, _, _ := b.stop(t.Context())
				lost := 0
				if caps.Unsettled == core.UnsettledLost {
					lost = 1
				}
				if left.Lost != lost || len(b.logs.lines("L-ABND")) != lost {
					t.Errorf("left %+v, %d lines", left, len(b.logs.lines("L-ABND")))
				}
				if len(b.p.outgoing()) != 0 {
					t.Error("it was published")
				}
			})
		})
	}
}

// A stop returns at its limit, whatever handlers do, and says which did not
// return. Handlers are cancelled shortly before.
func TestStopWithHandlers(t *testing.T) { // E-07
	for name, limit := range map[string]time.Duration{"grace 2s": 2 * time.Second, "grace 5s": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takes := []time.Duration{time.Second, 4 * time.Second, time.Hour}
				var benches []*bench
				for _, d := range takes {
					b := newBench(t, kindA, func(*Delivery) Said {
						time.Sleep(d) // deaf to its context
						return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
					})
					benches = append(benches, b)
					m := message("x")
					m.Position = []byte("line 7")
					synctest.Wait()
					b.p.deliver(m, message("queued"))
				}
				synctest.Wait()
				for i, b := range benches {
					start := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					b.lane.StopIntake()
					left := b.lane.Drain(ctx)
					cancel()
					if took := time.Since(start); took > limit+500*time.Millisecond {
						t.Errorf("handler of %v: the stop took %v", takes[i], took)
					}
					wants := 0
					if takes[i] > limit {
						wants = 1
					}
					if left.Handlers != wants || len(left.Running) != wants {
						t.Errorf("handler of %v: left %+v", takes[i], left)
					}
					if wants == 1 && left.Running[0] != "own at line 7" {
						t.Errorf("names %q", left.Running[0])
					}
					if acked := b.lane.Counters().Acked; acked != uint64(1-wants) {
						t.Errorf("%d acked", acked)
					}
				}
			})
		})
	}
}

// What a handler says that a stop has cancelled is no verdict.
func TestStopIsNoFailure(t *testing.T) { // E-08, S-GEN-69
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		cancelledAt := atomic.Int64{}
		start := time.Now()
		b = newBench(t, kindA, nil, func(s *setup) {
			s.o.Policy.MaxAttempts, s.o.Policy.DeadLetter = 1, true
			s.o.Dead = open("q", stored)
			s.o.Handle = func(ctx context.Context, _ *Delivery) Said {
				<-ctx.Done()
				cancelledAt.Store(int64(time.Since(start)))
				return Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: ctx.Err()}
			}
		})
		synctest.Wait()
		for range 20 {
			b.p.deliver(message("x"))
		}
		synctest.Wait()
		left, _, _ := b.stop(limited(t, 5*time.Second))
		if left.Cancelled != 1 || left.Handlers+left.Unhandled+left.Settlements+left.Lost != 0 || len(left.Running) != 1 {
			t.Errorf("left %+v, want the one handler that was cancelled", left)
		}
		if at := time.Duration(cancelledAt.Load()); at != 4500*time.Millisecond {
			t.Errorf("cancelled after %v, want the last tenth of the limit", at)
		}
		if got := b.p.outgoing(); len(got) != 0 {
			t.Errorf("dead letters %v", got)
		}
		for _, k := range b.p.kinds() {
			if k != core.VerdictRelease {
				t.Errorf("verdict %v", k)
			}
		}
		if c := b.lane.Counters(); c.Released != 20 {
			t.Errorf("counters %+v", c)
		}
	})
}

// Holds of deliveries that come back by themselves are not waited for; those
// of deliveries that would be lost are.
func TestStopWithHolds(t *testing.T) {
	lost := kindC
	lost.Unsettled = core.UnsettledLost
	for name, tt := range map[string]struct {
		caps core.Capabilities
		took time.Duration
		want string
	}{
		"comes back":    {kindC, 0, "HOLD(10m)=CUT"},
		"would be lost": {lost, 10 * time.Minute, "HOLD(10m); REQUEUE"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, says(later(10*time.Minute)), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
				synctest.Wait()
				m := message("x")
				m.Attempt = 1
				b.p.deliver(m)
				synctest.Wait()
				start := time.Now()
				b.stop(t.Context())
				if took := time.Since(start); took != tt.took {
					t.Errorf("the stop took %v, want %v", took, tt.took)
				}
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Tries go on while the host stops, up to its limit.
func TestStopCutsTries(t *testing.T) {
	for name, caps := range map[string]core.Capabilities{"A": kindA, "U": kindU} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, caps, says(retry()), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.plugin = func(p *plugin) {
						p.receipt = func(*frame.Outgoing, int) (frame.Receipt, bool) {
							return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Transient: true}}, true
						}
					}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				left, _, _ := b.stop(limited(t, 3*time.Second))
				lost := 0
				if caps.Ack == core.AckNone {
					lost = 1
				}
				if left.Settlements != 1 || left.Lost != lost {
					t.Errorf("left %+v", left)
				}
				if diff := cmp.Diff([]string{"PUBLISH(own,1)=CUT"}, b.texts()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A plugin that does not answer Stop, nor ends its stream, holds up nobody.
func TestStopWithADeafPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks, func(s *setup) { s.plugin = func(p *plugin) { p.noEnd = true } })
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		start := time.Now()
		left, _, _ := b.stop(t.Context())
		if took := time.Since(start); took > 2*endLimit || !left.Empty() {
			t.Errorf("took %v, left %+v", took, left)
		}
	})
}

// A source that ends by itself: its last verdicts are given, the stream is
// half-closed, and its end is orderly.
func TestEnd(t *testing.T) { // S-GEN-68
	synctest.Test(t, func(t *testing.T) {
		changed := atomic.Int32{}
		b := newBench(t, kindA, func(*Delivery) Said {
			time.Sleep(time.Second)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.Changed = func() { changed.Add(1) } })
		synctest.Wait()
		b.p.deliver(message("1"), message("2"))
		b.p.say(frame.SubscribeResponse{Ended: ended()})
		synctest.Wait()
		if s := b.lane.State(); !s.Ended || s.InWork != 2 || !s.Attached {
			t.Errorf("state %+v", s)
		}
		before := changed.Load()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if s := b.lane.State(); !s.Ended || s.InWork != 0 || s.Attached {
			t.Errorf("state %+v", s)
		}
		if changed.Load() == before {
			t.Error("the end was not told")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.broken) > 0 || b.p.halves != 1 {
			t.Errorf("broken %v, half-closed %d times", b.broken, b.p.halves)
		}
	})
}

func TestCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks)
		synctest.Wait()
		b.p.deliver(message("1"))
		b.p.say(frame.SubscribeResponse{CaughtUp: true})
		synctest.Wait()
		if s := b.lane.State(); !s.CaughtUp || s.InWork != 0 {
			t.Errorf("state %+v", s)
		}
		if err := b.lane.Fence(t.Context()); err != nil {
			t.Error(err)
		}
		b.p.deliver(message("2"))
		synctest.Wait()
		if b.lane.State().CaughtUp {
			t.Error("caught up after one more delivery")
		}
		b.crash()
		if err := b.lane.Fence(t.Context()); !errors.Is(err, ErrDown) {
			t.Errorf("fence without a generation: %v", err)
		}
	})
}

// A receive error that is bound to no delivery is said, and the next delivery
// is read.
func TestReport(t *testing.T) { // S-GEN-67, S-STD-09
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks)
		synctest.Wait()
		b.p.say(report(core.FaultUnavailable, ""))
		b.p.say(report(core.FaultInvalid, "line 3"))
		b.p.deliver(message("1"))
		synctest.Wait()
		lines := b.logs.lines("L-STREAM")
		if len(lines) != 2 || lines[0]["level"] != "ERROR" || lines[1]["level"] != "WARN" || lines[1]["position"] != "line 3" {
			t.Errorf("lines %v", lines)
		}
		if c := b.lane.Counters(); c.Acked != 1 || c.Reports != 2 {
			t.Errorf("counters %+v", c)
		}
	})
}
