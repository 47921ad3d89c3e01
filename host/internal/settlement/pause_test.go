// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// creditOf is the credit that the plugin has.
func creditOf(p *plugin) frame.Credit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.credit
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled, changed atomic.Int32
		b := newBench(t, kindA, func(*Delivery) Said {
			handled.Add(1)
			time.Sleep(time.Second)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) {
			s.o.Paused = true
			s.o.Changed = func() { changed.Add(1) }
		})
		synctest.Wait()
		if c := creditOf(b.p); c != (frame.Credit{}) || !b.lane.State().Paused {
			t.Errorf("paused from the beginning: credit %+v", c)
		}
		b.lane.Resume()
		synctest.Wait()
		if c := creditOf(b.p); c.Messages != creditMessages || b.lane.State().Paused {
			t.Errorf("credit %+v after Resume", c)
		}
		b.p.deliver(message("1"), message("2"), message("3"))
		synctest.Wait()
		since := b.lane.State().Since
		time.Sleep(time.Millisecond)
		before := changed.Load()
		b.lane.Pause()
		b.lane.Pause()
		synctest.Wait()
		if changed.Load() != before+1 || !b.lane.State().Since.After(since) {
			t.Errorf("told %d times of one pause", changed.Load()-before)
		}
		if c := creditOf(b.p); c != (frame.Credit{}) {
			t.Errorf("credit %+v of a paused lane", c)
		}
		b.p.deliver(message("under way")) // sent before the plugin has read it
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := handled.Load(); n != 1 {
			t.Errorf("%d handled, want the one that was running", n)
		}
		if c := b.lane.Counters(); c.Acked != 1 || c.InWork != 3 {
			t.Errorf("counters %+v", c)
		}
		if len(b.broken) > 0 {
			t.Errorf("broken %v", b.broken)
		}
		b.lane.Resume()
		time.Sleep(time.Minute)
		if c := b.lane.Counters(); c.Acked != 4 {
			t.Errorf("counters %+v", c)
		}
	})
}

// A pause outlasts the plugin's generations, and deliveries that came before it
// end with theirs.
func TestPauseOverACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks)
		synctest.Wait()
		b.lane.Pause()
		b.p.deliver(message("1"), message("2"))
		synctest.Wait()
		b.crash()
		synctest.Wait()
		if c := b.lane.Counters(); c.Stale != 2 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
		b.attach(newPlugin())
		synctest.Wait()
		if c := creditOf(b.p); c != (frame.Credit{}) {
			t.Errorf("credit %+v", c)
		}
		b.lane.Resume()
		synctest.Wait()
		b.p.deliver(message("1"))
		synctest.Wait()
		if c := b.lane.Counters(); c.Acked != 1 {
			t.Errorf("counters %+v", c)
		}
	})
}

// A stop ends a pause: what would be lost is handled, the rest goes back.
func TestStopWhilePaused(t *testing.T) {
	for name, caps := range map[string]core.Capabilities{"goes back": kindA, "would be lost": kindU} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var handled atomic.Int32
				b := newBench(t, caps, func(*Delivery) Said {
					handled.Add(1)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				})
				synctest.Wait()
				b.lane.Pause()
				b.p.deliver(message("1"), message("2"))
				synctest.Wait()
				left, _, _ := b.stop(t.Context())
				want := int32(0)
				if caps.Unsettled == core.UnsettledLost {
					want = 2
				}
				if handled.Load() != want || !left.Empty() {
					t.Errorf("%d handled, want %d; left %+v", handled.Load(), want, left)
				}
			})
		})
	}
}
