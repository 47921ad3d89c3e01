// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// User code that ends its goroutine in a batch: each delivery counts as one whose
// handler has panicked, said once.
func TestBatchEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 2, time.Second), func(s *setup) {
			s.o.Policy.MaxAttempts, s.o.Workers = 3, 2
			open, handle := s.o.Batch.Open, s.o.Batch.Handle
			s.o.Batch.Open = func(ctx context.Context, d *Delivery) (Said, bool) {
				if string(d.Message.Payload) == "exit in open" {
					runtime.Goexit()
				}
				return open(ctx, d)
			}
			s.o.Batch.Handle = func(ctx context.Context, ds []*Delivery, said []Said) int {
				if string(ds[0].Message.Payload) == "exit" {
					runtime.Goexit()
				}
				return handle(ctx, ds, said)
			}
		})
		synctest.Wait()
		deliverAll(b.p, "1", "exit in open", "2", "exit", "3", "4", "exit in open", "5")
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := b.lane.Counters(); c.Acked != 4 || c.Retried != 4 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
		if n := len(b.logs.lines("L-PAN")); n != 3 {
			t.Errorf("%d lines, want one for each in open and one for the batch", n)
		}
		if left, _, _ := b.stop(t.Context()); !left.Empty() {
			t.Errorf("left %+v", left)
		}
	})
}

// What a batch has gathered goes back at a stop, unless it would be lost.
func TestStopWhileABatchGathers(t *testing.T) {
	for name, caps := range map[string]core.Capabilities{"goes back": kindA, "would be lost": kindU} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &batches{}
				b := newBench(t, caps, nil, inBatches(calls, 10, time.Hour))
				synctest.Wait()
				deliverAll(b.p, "1", "2")
				synctest.Wait()
				start := time.Now()
				left, _, _ := b.stop(t.Context())
				if took := time.Since(start); took > 0 || !left.Empty() {
					t.Errorf("took %v, left %+v", took, left)
				}
				var want []string
				released := uint64(2)
				if caps.Unsettled == core.UnsettledLost {
					want, released = []string{"0s 1 2"}, 0
				}
				if diff := cmp.Diff(want, calls.all()); diff != "" {
					t.Error(diff)
				}
				if c := b.lane.Counters(); c.Released != released || c.InWork != 0 {
					t.Errorf("counters %+v", c)
				}
			})
		})
	}
}

// Every delivery of a batch that does not return is listed.
func TestStopWithABatchThatDoesNotReturn(t *testing.T) { // E-07
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindU, nil, inBatches(&batches{}, 3, time.Minute), func(s *setup) {
			s.o.Workers = 2
			s.o.Batch.Handle = func(_ context.Context, ds []*Delivery, _ []Said) int {
				time.Sleep(time.Hour)
				return len(ds)
			}
		})
		synctest.Wait()
		deliverAll(b.p, "1", "2", "3", "4", "5", "6", "7", "8")
		synctest.Wait()
		left := b.lane.Drain(limited(t, time.Minute))
		if left.Handlers != 6 || len(left.Running) != 8 || left.Unhandled != 2 {
			t.Errorf("left %+v", left)
		}
		time.Sleep(2 * time.Hour)
	})
}

// What is void and returns leaves the batch that gathers; what is void and gone
// stays in it.
func TestVoidWhileABatchGathers(t *testing.T) { // S-GEN-98
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 10, time.Minute))
		synctest.Wait()
		deliverAll(b.p, "1", "2", "3", "4")
		synctest.Wait()
		b.p.void(&transportpb.Void{First: 1, Count: 1, Returns: true})
		b.p.void(&transportpb.Void{First: 3, Count: 1})
		synctest.Wait()
		if c := b.lane.Counters(); c.Stale != 1 {
			t.Errorf("counters %+v", c)
		}
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"1m0s 2 3 4"}, calls.all()); diff != "" {
			t.Error(diff)
		}
		deliverAll(b.p, "5")
		synctest.Wait()
		b.crash()
		synctest.Wait()
		if c := b.lane.Counters(); c.Stale != 2 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
		b.attach(newPlugin())
		synctest.Wait()
		deliverAll(b.p, "5 again")
		time.Sleep(time.Hour)
		if n := len(calls.all()); n != 2 {
			t.Errorf("calls %v", calls.all())
		}
	})
}

// A pause holds a batch back that has gathered; it runs at once when it is over.
func TestPauseWhileABatchGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 3, time.Second))
		synctest.Wait()
		deliverAll(b.p, "1", "2")
		synctest.Wait()
		b.lane.Pause()
		time.Sleep(time.Hour)
		if n := calls.all(); len(n) > 0 {
			t.Errorf("handled while paused: %v", n)
		}
		b.lane.Resume()
		synctest.Wait()
		if diff := cmp.Diff([]string{"1h0m0s 1 2"}, calls.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// The holds of what a batch has gathered are prolonged.
func TestHoldsWhileABatchGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caps := kinds["T"]
		caps.Extend = true
		calls := &batches{}
		b := newBench(t, caps, nil, inBatches(calls, 3, 5*time.Minute))
		synctest.Wait()
		deliverAll(b.p, "1", "2")
		time.Sleep(4 * time.Minute)
		n := 0
		for _, k := range b.p.kinds() {
			if k == core.VerdictExtend {
				n++
			}
		}
		if n < 2*8 {
			t.Errorf("%d holds were prolonged in 4 minutes", n)
		}
	})
}
