// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func breaker(s *setup) {
	s.o.Circuit = &Circuit{Share: 0.5, Of: 4, Pause: 10 * time.Second, Longest: 30 * time.Second, Probes: 2}
}

// stage is a lane whose handler fails while down is set.
type stageOf struct {
	*bench
	down  atomic.Bool
	mu    sync.Mutex
	runs  []string
	start time.Time
}

func newStage(t *testing.T, caps core.Capabilities, change ...func(*setup)) *stageOf {
	x := &stageOf{start: time.Now()}
	x.bench = newBench(t, caps, func(d *Delivery) Said {
		x.mu.Lock()
		x.runs = append(x.runs, fmt.Sprint(time.Since(x.start)))
		x.mu.Unlock()
		if x.down.Load() {
			return Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}}
		}
		return payloadSays(d)
	}, append([]func(*setup){breaker, func(s *setup) { s.o.Policy.MaxAttempts = 100 }}, change...)...)
	synctest.Wait()
	return x
}

func (x *stageOf) times() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.runs...)
}

func TestCircuitOpensProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStage(t, kindA)
		x.down.Store(true)
		deliverAll(x.p, "1", "2", "3", "4", "5", "6", "7", "8")
		synctest.Wait()
		if s := x.lane.State(); s.Circuit != CircuitOpen || s.InWork != 4 || creditOf(x.p) != (frame.Credit{}) {
			t.Errorf("state %+v, credit %+v", s, creditOf(x.p))
		}
		time.Sleep(65 * time.Second) // probes after 10, 30 and 60 s
		x.down.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{"0s", "0s", "0s", "0s", "10s", "30s", "1m0s", "1m30s"}
		if diff := cmp.Diff(want, x.times()); diff != "" {
			t.Error(diff)
		}
		if s := x.lane.State(); s.Circuit != CircuitHalfOpen || creditOf(x.p).Messages == 0 {
			t.Errorf("state %+v, credit %+v", s, creditOf(x.p))
		}
		deliverAll(x.p, "9", "10")
		synctest.Wait()
		if s := x.lane.State(); s.Circuit != CircuitClosed {
			t.Errorf("state %+v", s)
		}
		if n := len(x.logs.lines("")); n == 0 {
			t.Error("nothing was logged")
		}
		// A new failure begins with the first pause again.
		x.down.Store(true)
		deliverAll(x.p, "1", "2", "3", "4", "5")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(x.times()); n != 8+2+3+1 { // the one before the three has passed
			t.Errorf("%d runs: %v", n, x.times())
		}
	})
}

// What is no failure opens nothing: drops, and errors that no retry cures.
func TestCircuitCountsFailuresAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStage(t, kindA)
		for range 5 {
			deliverAll(x.p, "drop", "ack", "retry", "never")
		}
		synctest.Wait()
		if s := x.lane.State(); s.Circuit != CircuitClosed {
			t.Errorf("state %+v at a quarter of failures", s)
		}
		deliverAll(x.p, "retry", "retry")
		synctest.Wait()
		if s := x.lane.State(); s.Circuit != CircuitOpen {
			t.Errorf("state %+v", s)
		}
	})
}

// A probe that comes to nothing lets another one through.
func TestInconclusiveProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaves := atomic.Int32{}
		b := newBench(t, kindA, func(d *Delivery) Said {
			if string(d.Message.Payload) == "leave" {
				leaves.Add(1)
				return Said{}
			}
			return payloadSays(d)
		}, breaker, func(s *setup) { s.o.Policy.MaxAttempts = 100; s.o.Workers = 4 })
		synctest.Wait()
		deliverAll(b.p, "retry", "retry", "retry", "retry")
		synctest.Wait()
		deliverAll(b.p, "leave", "leave", "ack", "ack", "ack")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := b.lane.State(); s.Circuit != CircuitClosed || leaves.Load() != 2 {
			t.Errorf("state %+v", s)
		}
	})
}

// Elements of a batch count alike, and a probe is a batch of one.
func TestCircuitOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 4, time.Second), breaker, func(s *setup) {
			s.o.Policy.MaxAttempts = 100
		})
		synctest.Wait()
		deliverAll(b.p, "retry", "1", "2", "retry", "3", "4", "5", "6", "7", "8")
		time.Sleep(time.Minute)
		want := []string{"0s retry 1 2 retry", "10s 3", "10s 4", "10s 5 6 7 8"}
		if diff := cmp.Diff(want, calls.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// A stop does not wait for a breaker: what would be lost is handled.
func TestStopWithAnOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStage(t, kindU)
		x.down.Store(true)
		deliverAll(x.p, "1", "2", "3", "4", "5", "6")
		synctest.Wait()
		x.down.Store(false)
		left, _, _ := x.stop(t.Context())
		if n := len(x.times()); n != 6 || !left.Empty() {
			t.Errorf("%d runs, left %+v", n, left)
		}
	})
}

func TestPace(t *testing.T) {
	for name, change := range map[string]func(*setup){
		"one by one": func(*setup) {},
		"batches":    inBatches(&batches{}, 3, time.Minute),
		"workers":    func(s *setup) { s.o.Workers = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				allowed, next := 0, time.Time{}
				b := newBench(t, kindA, acks, change, func(s *setup) {
					s.o.Pace = func(now time.Time) time.Duration { // one a second
						mu.Lock()
						defer mu.Unlock()
						if wait := next.Sub(now); wait > 0 {
							return wait
						}
						next = now.Add(time.Second)
						allowed++
						return 0
					}
				})
				synctest.Wait()
				deliverAll(b.p, "1", "2", "3", "4", "5", "6", "7", "8", "9")
				time.Sleep(5500 * time.Millisecond)
				if c := b.lane.Counters(); c.Acked != 6 {
					t.Errorf("counters %+v after 5.5 s", c)
				}
				time.Sleep(time.Minute)
				if c := b.lane.Counters(); c.Acked != 9 || allowed > 10 {
					t.Errorf("counters %+v, %d were allowed", c, allowed)
				}
				if left, _, _ := b.stop(t.Context()); !left.Empty() {
					t.Errorf("left %+v", left)
				}
			})
		})
	}
}
