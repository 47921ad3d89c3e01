// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func transient(after time.Duration) frame.Receipt {
	return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "busy", Transient: true, RetryAfter: after}}
}

// tried runs one delivery whose copy is answered by receipt, and returns when
// each try came.
func tried(t *testing.T, caps core.Capabilities, receipt func(n int) (frame.Receipt, bool), wait time.Duration) (*bench, []time.Duration) {
	start := time.Now()
	var at []time.Duration
	b := newBench(t, caps, says(retry()), func(s *setup) {
		s.o.Policy.MaxAttempts, s.o.Policy.DeadLetter = 1, true
		s.o.Dead = open("q", stored)
		s.plugin = func(p *plugin) {
			p.receipt = func(_ *frame.Outgoing, n int) (frame.Receipt, bool) {
				at = append(at, time.Since(start))
				return receipt(n)
			}
		}
	})
	synctest.Wait()
	m := message("x")
	m.Attempt = 1
	b.p.deliver(m)
	time.Sleep(wait)
	synctest.Wait()
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	return b, slices.Clone(at)
}

// A transient fault is tried again with growing waits and heals unseen.
func TestTriesHeal(t *testing.T) { // S-GEN-85
	synctest.Test(t, func(t *testing.T) {
		b, at := tried(t, kindA, func(n int) (frame.Receipt, bool) {
			if n < 5 {
				return transient(0), true
			}
			return frame.Receipt{Status: frame.ReceiptConfirmed}, true
		}, time.Minute)
		if diff := cmp.Diff([]string{"WARN(L-CAP-DL); PUBLISH(q,1); ACK"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		if len(at) != 5 {
			t.Fatalf("%d tries", len(at))
		}
		for i, base := range []time.Duration{100, 200, 400, 800} {
			base *= time.Millisecond
			if wait := at[i+1] - at[i]; wait < base*3/4 || wait > base {
				t.Errorf("wait %d was %v, want up to a quarter less than %v", i+1, wait, base)
			}
		}
	})
}

// What is published where nobody reads is lost, and told so: one line at once,
// then one a second.
func TestUnroutedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := tried(t, kindA, func(int) (frame.Receipt, bool) {
			return frame.Receipt{Status: frame.ReceiptConfirmed, Unrouted: true}, true
		}, time.Minute)
		if diff := cmp.Diff([]string{"WARN(L-CAP-DL); PUBLISH(q,1); ACK"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		if c := b.lane.Counters(); c.DeadLettered != 1 || c.Lost != 1 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
		if lines := b.logs.lines("L-UNR"); len(lines) != 1 {
			t.Errorf("lines of L-UNR: %v", lines)
		}
	})
}

// The destination may say when to come back.
func TestTriesAfterWhatTheFaultSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, at := tried(t, kindA, func(n int) (frame.Receipt, bool) {
			if n == 1 {
				return transient(7 * time.Second), true
			}
			return frame.Receipt{Status: frame.ReceiptConfirmed}, true
		}, time.Minute)
		if len(at) != 2 || at[1]-at[0] != 7*time.Second {
			t.Errorf("tries at %v", at)
		}
	})
}

// Tries end at the publish limit, and earlier where the source takes the
// delivery back before.
func TestTriesEnd(t *testing.T) { // D2, S-GEN-79
	lease := core.Capabilities{Ack: core.AckSingle, Address: "own", Unsettled: core.UnsettledOnTimeout, MaxHold: 30 * time.Second}
	extended := lease
	extended.Extend = true
	silent := func(int) (frame.Receipt, bool) { return frame.Receipt{}, false }
	busy := func(int) (frame.Receipt, bool) { return transient(0), true }
	tests := map[string]struct {
		caps    core.Capabilities
		receipt func(int) (frame.Receipt, bool)
		within  time.Duration
	}{
		"limit":                  {kindA, busy, publishLimit},
		"limit, no receipt":      {kindA, silent, publishLimit},
		"lease":                  {lease, busy, 30 * time.Second},
		"lease, no receipt":      {lease, silent, 30 * time.Second},
		"lease that is extended": {extended, busy, publishLimit},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := tried(t, tt.caps, tt.receipt, tt.within-5*time.Second)
				if got := b.texts(); len(got) != 0 {
					t.Errorf("ended 5 s early: %v", got)
				}
				time.Sleep(6500 * time.Millisecond) // past it, with a hold of a second after
				synctest.Wait()
				if got := b.texts(); len(got) != 1 {
					t.Fatalf("plans %v", got)
				}
				if lines := b.logs.lines("L-COPY"); len(lines) != 1 || lines[0]["destination"] != "q@in" || lines[0]["then"] == "" {
					t.Errorf("lines %v", lines)
				}
				extends := 0
				for _, k := range b.p.kinds() {
					if k == core.VerdictExtend {
						extends++
					}
				}
				if tt.caps.Extend != (extends >= 3) {
					t.Errorf("%d times extended", extends)
				}
			})
		})
	}
}

// A try that is out at the publish limit is waited for where what it came to would
// else be taken for sent: a destination that has no peer says so after a while.
func TestTriesWaitForTheLastAnswer(t *testing.T) { // D2, S-ZMQ-19
	for name, tt := range map[string]struct {
		answer time.Duration
		want   string
		lost   int
	}{
		"refused after 5 s":  {5 * time.Second, "WARN(L-CAP-DL); PUBLISH(q,1)=TRANSIENT; ERROR(L-LOST); RELEASE", 1},
		"refused after 50 s": {50 * time.Second, "WARN(L-CAP-DL); PUBLISH(q,1)=UNKNOWN; RELEASE", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var last time.Duration
				b := newBench(t, kindU, says(retry()), func(s *setup) {
					s.o.Policy.MaxAttempts, s.o.Policy.DeadLetter = 1, true
					s.o.Dead = open("q", stored)
					s.plugin = func(p *plugin) {
						p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
							last = time.Since(start)
							r := transient(0)
							r.ID = o.ID
							time.AfterFunc(tt.answer, func() { p.receipts <- r })
							return frame.Receipt{}, false
						}
					}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				time.Sleep(2 * publishLimit)
				synctest.Wait()
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				if last > publishLimit {
					t.Errorf("the last try came after %v", last)
				}
				lines := b.logs.lines("L-LOST")
				if len(lines) != tt.lost || tt.lost > 0 && lines[0]["error"] != "busy" {
					t.Errorf("lines %v", lines)
				}
			})
		})
	}
}

// A dead letter that cannot be written is kept where the source can hold it, and
// written later.
func TestKeptUntilItIsWritten(t *testing.T) { // E-05, S-GEN-80
	synctest.Test(t, func(t *testing.T) {
		healed := atomic.Bool{}
		b, _ := tried(t, kindM, func(int) (frame.Receipt, bool) {
			if healed.Load() {
				return frame.Receipt{Status: frame.ReceiptConfirmed}, true
			}
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "disk is full"}}, true
		}, time.Hour)
		if b.p.unsettled() != 1 || len(b.texts()) != 0 {
			t.Fatalf("not kept: %v", b.texts())
		}
		b.p.deliver(message("good"))
		healed.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "WARN(L-CAP-DL); PUBLISH(q,1)=REFUSED; WARN(L-COPY); KEEP"
		if got := b.texts(); len(got) != 2 || got[0] != want && got[1] != want {
			t.Errorf("plans %v", got)
		}
		if b.p.unsettled() != 0 {
			t.Error("not acked")
		}
		if c := b.lane.Counters(); c.DeadLettered != 2 {
			t.Errorf("counters %+v", c)
		}
	})
}

// What is still kept at a stop comes back to the next process, unless its source has
// forgotten it meanwhile: then it is lost, and that is told.
func TestKeptUntilTheStop(t *testing.T) {
	for name, forgotten := range map[string]bool{"comes back": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := tried(t, kindM, func(int) (frame.Receipt, bool) {
					return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "disk is full"}}, true
				}, time.Hour)
				want := 0
				if forgotten {
					b.p.void(&transportpb.Void{All: true})
					want = 1
				}
				synctest.Wait()
				b.stop(t.Context())
				lines := b.logs.lines("L-LOST")
				if len(lines) != want {
					t.Fatalf("lines %v; plans %v", lines, b.texts())
				}
				if forgotten && (lines[0]["level"] != "ERROR" || lines[0]["destination"] != "q@in" || lines[0]["error"] != "disk is full") {
					t.Errorf("line %v", lines[0])
				}
				if c := b.lane.Counters(); c.Dropped != uint64(want) {
					t.Errorf("counters %+v", c)
				}
			})
		})
	}
}

// A hold is prolonged where the source can.
func TestHoldIsExtended(t *testing.T) { // S-GEN-90
	synctest.Test(t, func(t *testing.T) {
		caps := kindC
		caps.MaxHold, caps.Extend = 30*time.Second, true
		b := newBench(t, caps, says(later(100*time.Second)), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		m := message("x")
		m.Attempt = 1
		b.p.deliver(m)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"HOLD(1m40s); REQUEUE"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		extends := 0
		for _, v := range b.p.verdicts {
			if v.Kind == core.VerdictExtend {
				extends++
				if v.Hold != 27*time.Second { // MaxHold itself is refused
					t.Errorf("extended by %v", v.Hold)
				}
			}
		}
		if extends != 7 {
			t.Errorf("extended %d times in 100 s, want every 13.5 s", extends)
		}
	})
}

// A plugin that dies with an ack unanswered: what nobody knows counts as
// accepted while no copy is out, since the copy that follows is a double at
// worst. A verdict that was never sent is stale.
func TestCrashBeforeTheAnswer(t *testing.T) {
	confirmed := func(*frame.Outgoing, int) (frame.Receipt, bool) {
		return frame.Receipt{Status: frame.ReceiptConfirmed}, true
	}
	tests := map[string]struct {
		said   core.Outcome
		deaf   bool
		want   string
		copies int
		lines  int
	}{
		"sent, the copy follows":     {later(time.Hour), false, "ACK; PUBLISH+1h(own,1)", 1, 1},
		"not sent":                   {later(time.Hour), true, "ACK=STALE", 0, 0},
		"sent, the copy is out":      {retry(), false, "PUBLISH(own,1); ACK=STALE; WARN(L-DBL)", 1, 1},
		"sent, nothing else follows": {core.Outcome{Kind: core.OutcomeAck}, false, "ACK=STALE", 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, says(tt.said), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.plugin = func(p *plugin) {
						p.mute, p.receipt = true, confirmed
						if tt.deaf {
							p.deaf = make(chan struct{})
						}
					}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				if tt.deaf {
					// The writer hands its runs to a stream that nobody reads; what
					// comes after them is still queued.
					for range 20 {
						b.p.deliver(message("y"))
						synctest.Wait()
					}
				}
				sent := len(b.p.outgoing())
				b.crash()
				p := newPlugin()
				b.attach(p)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				texts := b.texts()
				if got := texts[len(texts)-1]; !tt.deaf && got != tt.want || tt.deaf && !slices.Contains(texts, tt.want) {
					t.Errorf("plans %v, want %q", texts, tt.want)
				}
				if got := sent + len(p.outgoing()); !tt.deaf && got != tt.copies {
					t.Errorf("%d copies, want %d", got, tt.copies)
				}
				if got := len(b.logs.lines("L-DBL")); !tt.deaf && got != tt.lines {
					t.Errorf("%d lines L-DBL: %v", got, b.logs.lines(""))
				}
			})
		})
	}
}

// Void says what the copy's own verdict could not.
func TestVoidBeforeTheCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(later(time.Hour)), func(s *setup) {
			s.plugin = func(p *plugin) { p.mute = true }
		})
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		b.p.void(&transportpb.Void{First: 1, Count: 1, Returns: true})
		synctest.Wait()
		b.crash()
		b.attach(newPlugin())
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ACK=STALE"}, b.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

// News of a Void that comes after the delivery is settled does not touch its
// copy.
func TestVoidAfterTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(later(time.Second)))
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		b.box.Detach(nil)
		time.Sleep(2 * time.Second) // the copy is due and waits for its endpoint
		synctest.Wait()
		b.waiting.mu.Lock()
		s := b.waiting.open[0]
		b.waiting.mu.Unlock()
		s.voided(s.wait.life, core.VoidReturns)
		if n := b.waiting.Len(); n != 1 {
			t.Errorf("%d copies wait: %v", n, b.texts())
		}
	})
}
