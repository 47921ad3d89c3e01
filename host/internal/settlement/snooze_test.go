// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// snoozes puts deliveries off by d until they have been put off so often.
func snoozes(times int, d time.Duration) func(*Delivery) Said {
	return func(x *Delivery) Said {
		if x.Snoozes < times {
			return Said{Outcome: later(d), Err: errors.New("not now"), Snooze: true}
		}
		return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
	}
}

func snoozable(s *setup) { s.o.SnoozeLimit, s.o.SnoozeTotal = 100, time.Hour }

func TestSnooze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var runs []string
		start := time.Now()
		b := newBench(t, kindA, func(d *Delivery) Said {
			mu.Lock()
			runs = append(runs, fmt.Sprintf("%v %s attempt %d, put off %d", time.Since(start), d.Message.Payload, d.Number, d.Snoozes))
			mu.Unlock()
			if string(d.Message.Payload) == "busy" {
				return snoozes(2, time.Minute)(d)
			}
			return acks(d)
		}, snoozable, func(s *setup) { s.o.Policy.MaxAttempts = 1 })
		synctest.Wait()
		b.p.deliver(message("busy"), message("2"))
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{
			"0s busy attempt 1, put off 0", "0s 2 attempt 1, put off 0",
			"1m0s busy attempt 1, put off 1", "2m0s busy attempt 1, put off 2",
		}
		if diff := cmp.Diff(want, runs); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"ACK", "ACK"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		if n := len(b.p.outgoing()); n > 0 {
			t.Errorf("%d were published", n)
		}
	})
}

// Where its bounds or the source's hold do not allow it, a snooze is a retry
// later.
func TestSnoozeBeyondItsBounds(t *testing.T) {
	lease := kinds["T"]
	prolonged := lease
	prolonged.Extend = true
	for name, c := range map[string]struct {
		caps   core.Capabilities
		change func(*setup)
		want   string
		ran    time.Duration
	}{
		"often":           {kindA, func(s *setup) { s.o.SnoozeLimit = 3 }, "ACK; PUBLISH+10s(own,1)", 30 * time.Second},
		"long":            {kindA, func(s *setup) { s.o.SnoozeTotal = 25 * time.Second }, "ACK; PUBLISH+10s(own,1)", 20 * time.Second},
		"not at all":      {kindA, func(s *setup) { s.o.SnoozeLimit = 0 }, "ACK; PUBLISH+10s(own,1)", 0},
		"lease":           {lease, func(*setup) {}, "ACK; PUBLISH+10s(own,1)", 20 * time.Second},
		"prolonged lease": {prolonged, func(s *setup) { s.o.SnoozeLimit = 7 }, "ACK; PUBLISH+10s(own,1)", 70 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var ran time.Duration
				b := newBench(t, c.caps, func(d *Delivery) Said {
					ran = time.Since(start)
					return snoozes(1000, 10*time.Second)(d)
				}, snoozable, c.change)
				synctest.Wait()
				b.p.deliver(message("x"))
				time.Sleep(time.Hour)
				synctest.Wait()
				if diff := cmp.Diff([]string{c.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				if ran != c.ran {
					t.Errorf("the last run came after %v, want %v", ran, c.ran)
				}
			})
		})
	}
}

// A stop lets go of what is put off and comes back by itself, and waits for what
// would be lost; the end of its limit cuts that off.
func TestStopWithSnoozes(t *testing.T) {
	for name, c := range map[string]struct {
		caps      core.Capabilities
		limit     time.Duration
		took      time.Duration
		unhandled int
		lost      uint64
	}{
		"goes back":             {kindA, 0, 0, 0, 0},
		"would be lost":         {kindU, 0, time.Minute, 0, 0},
		"would be lost, limit":  {kindU, 10 * time.Second, 9 * time.Second, 1, 1},
		"goes back, with limit": {kindA, 10 * time.Second, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.caps, snoozes(1, time.Minute), snoozable)
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				if s := b.lane.State(); s.InWork != 1 {
					t.Errorf("state %+v", s)
				}
				start := time.Now()
				ctx := t.Context()
				if c.limit > 0 {
					ctx = limited(t, c.limit)
				}
				left, _, _ := b.stop(ctx)
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if left.Unhandled != c.unhandled || len(left.Running) != c.unhandled {
					t.Errorf("left %+v", left)
				}
				if n := b.lane.Counters(); n.Lost != c.lost || n.InWork != 0 {
					t.Errorf("counters %+v", n)
				}
			})
		})
	}
}

// A handler that puts a delivery off while its lane stops says nothing of it.
func TestSnoozeDuringAStop(t *testing.T) { // S-GEN-69
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(d *Delivery) Said {
			time.Sleep(time.Second)
			return snoozes(1, time.Minute)(d)
		}, snoozable)
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		b.stop(t.Context())
		if c := b.lane.Counters(); c.Released != 1 || len(b.p.outgoing()) > 0 {
			t.Errorf("counters %+v", c)
		}
	})
}

// What is put off and void comes to an end at once when it returns, and is
// handled again when it does not.
func TestVoidSnoozes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, snoozes(1, time.Minute), snoozable)
		synctest.Wait()
		b.p.deliver(message("1"), message("2"), message("3"))
		synctest.Wait()
		b.p.void(&transportpb.Void{First: 1, Count: 1, Returns: true})
		b.p.void(&transportpb.Void{First: 2, Count: 1})
		synctest.Wait()
		if c := b.lane.Counters(); c.Stale != 1 || c.InWork != 2 {
			t.Errorf("counters %+v", c)
		}
		b.crash()
		synctest.Wait()
		if c := b.lane.Counters(); c.Stale != 2 || c.InWork != 1 {
			t.Errorf("counters %+v", c)
		}
		time.Sleep(time.Hour)
		if c := b.lane.Counters(); c.Acked != 1 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
	})
}

// What is put off keeps neither its key nor its place before what came later.
func TestSnoozesByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newTurns()
		b := newBench(t, kindA, func(d *Delivery) Said {
			defer at.begin(d)()
			time.Sleep(time.Second)
			if string(d.Message.Payload) == "1" {
				return snoozes(1, time.Millisecond)(d)
			}
			return acks(d)
		}, snoozable, func(s *setup) { s.o.Workers, s.o.Key = 2, byHeader })
		synctest.Wait()
		for _, x := range []string{"1", "2", "3"} {
			b.p.deliver(message(x, "key", "a"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := at.order["a"]
		if diff := cmp.Diff([]string{"1", "2", "3", "1"}, got); diff != "" || len(at.wrong) > 0 {
			t.Errorf("%s%v", diff, at.wrong)
		}
	})
}

// Elements of a batch are put off one by one, and come back in a later batch.
func TestSnoozesInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 3, time.Second), snoozable, func(s *setup) {
			handle := s.o.Batch.Handle
			s.o.Batch.Handle = handleSnoozing(handle)
		})
		synctest.Wait()
		deliverAll(b.p, "1", "snooze", "3", "4")
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"0s 1 snooze 3", "1s 4", "11s snooze"}, calls.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// The memory of a frame is not kept for one delivery of it that is put off.
func TestSnoozesLetGoOfTheirFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(d *Delivery) Said {
			if string(d.Message.Payload) == "x" {
				m := d.Message.Headers.Value("n")
				if m != "1" || string(d.Identity) != "id" || d.Scope != "s" {
					return Said{Outcome: core.Outcome{Kind: core.OutcomeDrop}}
				}
				return snoozes(2, time.Minute)(d)
			}
			return acks(d)
		}, snoozable)
		synctest.Wait()
		x := message("x", "n", "1")
		x.Identity, x.Scope = []byte("id"), "s"
		b.p.deliver(message("a"), x, message("b"))
		synctest.Wait()
		b.lane.mu.Lock()
		if n := len(b.lane.naps); n != 1 || len(b.lane.naps[0].f.frame.Items) != 1 {
			t.Errorf("%d are put off", n)
		}
		b.lane.mu.Unlock()
		time.Sleep(time.Hour)
		if c := b.lane.Counters(); c.Acked != 3 {
			t.Errorf("counters %+v", c)
		}
		if got := b.p.kinds(); slices.Contains(got, core.VerdictReject) {
			t.Errorf("verdicts %v", got)
		}
	})
}

// handleSnoozing puts off what is called snooze, once.
func handleSnoozing(handle func(context.Context, []*Delivery, []Said) int) func(context.Context, []*Delivery, []Said) int {
	return func(ctx context.Context, ds []*Delivery, said []Said) int {
		n := handle(ctx, ds, said)
		for i, d := range ds {
			if string(d.Message.Payload) == "snooze" {
				said[i] = snoozes(1, 10*time.Second)(d)
			}
		}
		return n
	}
}
