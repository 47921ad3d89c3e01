// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A subscription whose every delivery is tried later leaves a quarter of the room
// of waiting copies to others; alone it may have all of it.
func TestOneLaneLeavesRoomToOthers(t *testing.T) {
	for name, others := range map[string]int{"alone": 0, "two": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, says(later(time.Hour)), func(s *setup) { s.waiting.Messages = 40 })
				second := make([]*Lane, others)
				for i := range second {
					o := b.lane.o
					o.Subscription = "other"
					second[i] = NewLane(o)
				}
				synctest.Wait()
				for i := range 60 {
					b.p.deliver(message(fmt.Sprint(i)))
				}
				synctest.Wait()
				want := 40
				if others > 0 {
					want = 30
				}
				if got := b.waiting.Len(); got != want {
					t.Errorf("%d copies wait, want %d of 40", got, want)
				}
				for _, l := range second {
					if !b.waiting.reserve(l, 1) {
						t.Error("the other one has no room")
					}
					b.waiting.release(l, 1)
					if err := l.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(3 * time.Hour)
				if n := b.waiting.Len(); n != 0 || b.lane.waiting != (room{}) {
					t.Errorf("%d copies are left, %+v is taken", n, b.lane.waiting)
				}
			})
		})
	}
}

// A subscription that is flooded does not hold up another one of the same
// endpoint, even where each of its deliveries is published on.
func TestAFloodDoesNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flood := newBench(t, kindA, func(d *Delivery) Said {
			time.Sleep(10 * time.Millisecond)
			return Said{Outcome: retry()}
		}, func(s *setup) { s.o.Policy.MaxAttempts = 3; s.o.Workers = 16; s.blind = true })
		calm := newBench(t, kindA, says(retry()), func(s *setup) {
			s.o.Outboxes = func(string) *Outbox { return flood.box } // of one endpoint
			s.o.Policy.MaxAttempts = 3
		})
		synctest.Wait()
		for range 1000 {
			flood.p.deliver(message("x"))
		}
		calm.p.deliver(message("y"))
		time.Sleep(100 * time.Millisecond)
		if c := calm.lane.Counters(); c.Retried != 1 {
			t.Errorf("the other one has %+v after 100 ms", c)
		}
		if c := flood.lane.Counters(); c.InWork < 500 {
			t.Errorf("the flood is over: %+v", c)
		}
		time.Sleep(time.Minute)
		if c := flood.lane.Counters(); c.Retried != 1000 {
			t.Errorf("%+v", c)
		}
	})
}
