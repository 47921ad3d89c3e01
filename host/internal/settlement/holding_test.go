// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// leased is a source whose deliveries return when nobody settles or prolongs
// them in time.
func leased(hold time.Duration, extend bool) core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative,
		Unsettled: core.UnsettledOnTimeout, MaxHold: hold, Extend: extend,
	}
}

// leases keeps the books of leases: when each delivery's ends.
type leases struct {
	from  time.Time
	ends  map[uint64]time.Duration // after from
	lapse []uint64                 // those that had ended before they were settled or prolonged
}

// lease has p keep n leases of the given hold from now on.
func lease(p *plugin, hold time.Duration, n uint64) *leases {
	l := &leases{from: time.Now(), ends: make(map[uint64]time.Duration)}
	for id := range n {
		l.ends[id+1] = hold
	}
	p.answer = func(v frame.VerdictRun) (frame.SettleStatus, *core.Fault) {
		now := time.Since(l.from)
		if now >= l.ends[v.First] {
			l.lapse = append(l.lapse, v.First)
		}
		if v.Kind == core.VerdictExtend {
			if v.Hold >= hold {
				return frame.SettleUnsupported, nil
			}
			l.ends[v.First] = now + v.Hold
		}
		return frame.SettleDone, nil
	}
	return l
}

// extends counts the EXTENDs by delivery.
func (p *plugin) extends() map[uint64]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make(map[uint64]int)
	for _, v := range p.verdicts {
		if v.Kind == core.VerdictExtend {
			n[v.First]++
		}
	}
	return n
}

// Where the source can, the lease of a delivery is prolonged while its handler
// runs, and while it waits for the handler of another one.
func TestLongHandlerKeepsItsLease(t *testing.T) {
	const hold = 30 * time.Second
	tests := map[string]struct {
		caps core.Capabilities
		each time.Duration
		want map[uint64]int // EXTENDs
	}{
		"long":             {leased(hold, true), 50 * time.Second, map[uint64]int{1: 3, 2: 7, 3: 11}},
		"short":            {leased(hold, true), time.Second, map[uint64]int{}},
		"queued for long":  {leased(hold, true), 10 * time.Second, map[uint64]int{2: 1, 3: 2}},
		"no extend":        {leased(hold, false), 50 * time.Second, map[uint64]int{}},
		"nothing to hold":  {kindA, 50 * time.Second, map[uint64]int{}},
		"no time for that": {leased(time.Millisecond, true), 50 * time.Second, map[uint64]int{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, func(*Delivery) Said {
					time.Sleep(tt.each)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				}, func(s *setup) { s.blind = true })
				synctest.Wait()
				l := lease(b.p, hold, 3)
				b.p.deliver(message("1"), message("2"), message("3"))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tt.want, b.p.extends()); diff != "" {
					t.Error(diff)
				}
				if tt.caps.Extend && len(l.lapse) > 0 && tt.caps.MaxHold == hold {
					t.Errorf("the leases of %v had ended", l.lapse)
				}
				if c := b.lane.Counters(); c.Acked != 3 || c.Failed != 0 {
					t.Errorf("counters %+v", c)
				}
				b.lane.mu.Lock()
				defer b.lane.mu.Unlock()
				if !b.lane.holdsAt.IsZero() {
					t.Error("the clock is set for nothing")
				}
			})
		})
	}
}

// Nothing is prolonged any more once the delivery is void, its generation gone
// or its handler cancelled.
func TestLeaseIsLetGo(t *testing.T) {
	tests := map[string]func(b *bench){
		"void":  func(b *bench) { b.p.void(&transportpb.Void{First: 1, Count: 1, Returns: true}) },
		"crash": func(b *bench) { b.crash() },
		"stop": func(b *bench) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			b.lane.Drain(ctx)
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, leased(30*time.Second, true), func(*Delivery) Said {
					time.Sleep(5 * time.Minute)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				})
				synctest.Wait()
				p := b.p
				p.deliver(message("x"))
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff(map[uint64]int{1: 1}, p.extends()); diff != "" {
					t.Error(diff)
				}
				end(b)
				time.Sleep(4 * time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(map[uint64]int{1: 1}, p.extends()); diff != "" {
					t.Error(diff)
				}
				time.Sleep(5 * time.Minute)
			})
		})
	}
}

// The answer to an EXTEND whose delivery has got its verdict meanwhile is the
// answer to nothing else.
func TestAnswerOfAStrayExtend(t *testing.T) {
	for _, status := range []frame.SettleStatus{frame.SettleDone, frame.SettleFailed, frame.SettleStale} {
		t.Run(statusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, leased(30*time.Second, true), func(*Delivery) Said {
					time.Sleep(20 * time.Second)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				}, func(s *setup) {
					s.blind = true
					s.plugin = func(p *plugin) { p.mute = true }
				})
				synctest.Wait()
				b.p.deliver(message("1"))
				time.Sleep(time.Minute)
				if diff := cmp.Diff(map[uint64]int{1: 1}, b.p.extends()); diff != "" {
					t.Error(diff)
				}
				b.p.say(frame.SubscribeResponse{Settled: []frame.SettleResult{{First: 1, Count: 1, Status: status}}})
				synctest.Wait()
				if c := b.lane.Counters(); c.Failed != 0 || c.Acked != 1 || len(b.logs.lines("")) > 0 {
					t.Errorf("counters %+v, lines %v", c, b.logs.lines(""))
				}
				// The next one is about the ack.
				b.p.say(frame.SubscribeResponse{Settled: []frame.SettleResult{{First: 1, Count: 1, Status: frame.SettleStale}}})
				synctest.Wait()
				if c := b.lane.Counters(); c.Failed != 1 {
					t.Errorf("counters %+v", c)
				}
			})
		})
	}
}
