// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// A copy that leaves at once is in its outbox before the lane's next delivery
// starts, and its receipt holds nobody up.
func TestCopyHandedOverBeforeTheNext(t *testing.T) { // S-GEN-04
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		var missing []int
		b = newBench(t, kindA, func(*Delivery) Said {
			missing = append(missing, b.box.Missing())
			return Said{Outcome: retry()}
		}, func(s *setup) {
			s.o.Policy.MaxAttempts = 3
			s.plugin = func(p *plugin) { p.receipt = none }
		})
		var items []frame.Delivery
		for i := range 5 {
			items = append(items, message(fmt.Sprint(i)))
		}
		synctest.Wait()
		b.p.deliver(items...)
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, missing); diff != "" {
			t.Errorf("copies handed over as each delivery started: %s", diff)
		}
		var got []string
		for _, o := range b.p.outgoing() {
			got = append(got, string(o.Payload))
		}
		if diff := cmp.Diff([]string{"0", "1", "2", "3", "4"}, got); diff != "" {
			t.Errorf("order of copies: %s", diff)
		}
		if len(b.p.kinds()) != 0 {
			t.Errorf("verdicts %v before any receipt", b.p.kinds())
		}
	})
}

// One message that fails and is retried later holds up nobody.
func TestOneFailingMessageBlocksNone(t *testing.T) { // E-09
	for name, caps := range map[string]core.Capabilities{"A": kindA, "C": kindC, "U": kindU} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var others time.Duration
				done := 0
				b := newBench(t, caps, func(d *Delivery) Said {
					if string(d.Message.Payload) == "m01" {
						return Said{Outcome: later(2 * time.Second)}
					}
					done++
					others = time.Since(start)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				}, func(s *setup) { s.o.Policy.MaxAttempts = 5 })
				var items []frame.Delivery
				for i := range 50 {
					m := message(fmt.Sprintf("m%02d", i+1))
					m.Attempt = 1
					items = append(items, m)
				}
				synctest.Wait()
				b.p.deliver(items...)
				time.Sleep(time.Second)
				synctest.Wait()
				if done != 49 || others > time.Second {
					t.Errorf("%d others done, the last after %v", done, others)
				}
			})
		})
	}
}

// Verdicts are sent as runs where they are ready, in the order of the
// decisions.
func TestVerdictRuns(t *testing.T) {
	l := &Lane{}
	g := &generation{l: l, wake: make(chan struct{}, 1)}
	run := func(id uint64, k core.VerdictKind) {
		g.decide(frame.VerdictRun{First: id, Count: 1, Kind: k})
	}
	for _, id := range []uint64{1, 2, 3, 5, 6} {
		run(id, core.VerdictAck)
	}
	run(4, core.VerdictAck)
	run(7, core.VerdictReject)
	run(8, core.VerdictReject)
	g.decide(frame.VerdictRun{First: 9, Count: 1, Kind: core.VerdictRequeue, Delay: time.Second})
	g.decide(frame.VerdictRun{First: 10, Count: 1, Kind: core.VerdictRequeue, Delay: 2 * time.Second})
	want := []frame.VerdictRun{
		{First: 1, Count: 3, Kind: core.VerdictAck},
		{First: 5, Count: 2, Kind: core.VerdictAck},
		{First: 4, Count: 1, Kind: core.VerdictAck},
		{First: 7, Count: 2, Kind: core.VerdictReject},
		{First: 9, Count: 1, Kind: core.VerdictRequeue, Delay: time.Second},
		{First: 10, Count: 1, Kind: core.VerdictRequeue, Delay: 2 * time.Second},
	}
	if diff := cmp.Diff(want, g.runs); diff != "" {
		t.Error(diff)
	}
}

// A plugin that breaks the protocol loses its generation, not the lane.
func TestBreaches(t *testing.T) {
	over := make([]frame.Delivery, 65)
	for i := range over {
		over[i] = message("x")
	}
	tests := map[string]func(p *plugin){
		"beyond the window": func(p *plugin) { p.credit.Messages = 0; p.deliver(over...) },
		"an id again":       func(p *plugin) { p.deliver(message("x")); p.next = 0; p.deliver(message("y")) },
		"an unknown profile": func(p *plugin) {
			m := message("x")
			m.Profile = 1
			p.deliver(m)
		},
		"an answer to nothing": func(p *plugin) {
			p.say(frame.SubscribeResponse{Settled: []frame.SettleResult{{First: 9, Status: frame.SettleFailed}}})
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindU, func(*Delivery) Said {
					time.Sleep(time.Second)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				})
				synctest.Wait()
				do(b.p)
				synctest.Wait()
				b.mu.Lock()
				broken := len(b.broken)
				b.mu.Unlock()
				if broken != 1 || b.lane.State().Attached {
					t.Fatalf("told %d times, attached %v", broken, b.lane.State().Attached)
				}
				b.p.mu.Lock()
				b.p.breaches = nil
				b.p.mu.Unlock()
				b.now.end()
				b.attach(newPlugin())
				b.p.deliver(message("again"))
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if b.p.unsettled() != 0 {
					t.Error("the next generation does not work")
				}
			})
		})
	}
}

// Order: verdicts of one lane are decided one delivery at a time, in order.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		var order []string
		var mu sync.Mutex
		b := newBench(t, kindA, func(d *Delivery) Said {
			mu.Lock()
			running++
			most = max(most, running)
			order = append(order, string(d.Message.Payload))
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		})
		synctest.Wait()
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			b.p.deliver(message(want[i]))
		}
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if most != 1 {
			t.Errorf("%d at a time", most)
		}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Error(diff)
		}
	})
}

// A plugin that takes verdicts and answers none of them is let go before what
// waits for it outgrows the window.
func TestUnansweredVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks, func(s *setup) {
			s.o.Window = frame.Credit{Messages: 16, Bytes: 1 << 20}
			s.plugin = func(p *plugin) { p.mute = true }
		})
		synctest.Wait()
		for range 100 {
			b.p.deliver(message("x"))
			synctest.Wait()
			if !b.lane.State().Attached {
				break
			}
		}
		if n := b.lane.Counters().Received; n < 64 || n > 66 || b.lane.State().Attached {
			t.Errorf("%d delivered, attached %v", n, b.lane.State().Attached)
		}
	})
}

// A stop that cuts the publishes of a handler has no plan to show for it.
func TestStopCutsASend(t *testing.T) {
	for name, caps := range map[string]core.Capabilities{"A": kindA, "U": kindU} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failures []error
				b := newBench(t, caps, sending(&failures), func(s *setup) {
					s.plugin = func(p *plugin) { p.receipt = none }
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				left, _, missing := b.stop(limited(t, time.Second))
				lost := 0
				if caps.Ack == core.AckNone {
					lost = 1
				}
				if left.Settlements != 1 || left.Lost != lost || missing != 1 {
					t.Errorf("left %+v, %d missing", left, missing)
				}
				if got := b.observed(); len(got) != 0 {
					t.Errorf("plans %v", got)
				}
			})
		})
	}
}
