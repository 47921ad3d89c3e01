// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		defer c.close()
		start := time.Now()
		var rang []string
		alarms := make(map[string]*alarm)
		for _, name := range []string{"a", "b", "c", "d"} {
			alarms[name] = &alarm{ring: func() { rang = append(rang, fmt.Sprint(name, " ", time.Since(start))) }}
		}
		c.set(alarms["a"], start.Add(3*time.Second))
		c.set(alarms["b"], start.Add(time.Second))
		c.set(alarms["c"], start.Add(2*time.Second))
		c.set(alarms["d"], start.Add(-time.Second))
		c.unset(alarms["c"])
		c.unset(alarms["c"])
		c.set(alarms["b"], start.Add(4*time.Second)) // moved
		time.Sleep(time.Minute)
		synctest.Wait()
		c.set(alarms["a"], time.Now().Add(time.Second))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"d 0s", "a 3s", "b 4s", "a 1m1s"}, rang); diff != "" {
			t.Error(diff)
		}
	})
}

// An alarm set by an alarm rings, and none rings after the end.
func TestClockSetByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		n := 0
		var a alarm
		a.ring = func() {
			n++
			c.set(&a, time.Now().Add(time.Second))
		}
		c.set(&a, time.Now().Add(time.Second))
		time.Sleep(10500 * time.Millisecond)
		c.close()
		c.close()
		time.Sleep(time.Minute)
		if n != 10 {
			t.Errorf("rang %d times", n)
		}
	})
}

// Waiting copies leave in the order of their times, whatever their number, and
// cost what is stated at most.
func TestManyWaitingCopies(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("100,000 copies take their time")
	}
	synctest.Test(t, func(t *testing.T) {
		const all = 100_000
		delay := func(n int) time.Duration { return time.Hour + time.Duration(all-n)*time.Second }
		b := newBench(t, kindA, func(d *Delivery) Said {
			var n int
			_, _ = fmt.Sscan(string(d.Message.Payload), &n)
			return Said{Outcome: later(delay(n))}
		}, func(s *setup) { s.blind = true })
		synctest.Wait()
		before := heapInUse()
		for n := 0; n < all; n += 200 {
			var items []frame.Delivery
			for i := range 200 {
				items = append(items, message(fmt.Sprint(n+i)))
			}
			b.p.deliver(items...)
			synctest.Wait()
			b.p.mu.Lock()
			clear(b.p.items)
			clear(b.p.settled)
			b.p.verdicts = b.p.verdicts[:0]
			b.p.mu.Unlock()
		}
		if n := b.waiting.Len(); n != all {
			t.Fatalf("%d copies wait", n)
		}
		if c := b.lane.Counters(); c.Waiting != all || c.InWork != all {
			t.Errorf("counters %+v", c)
		}
		if each := (heapInUse() - before) / all; each > waitingOverhead {
			t.Errorf("a waiting copy takes %d bytes, %d are stated", each, waitingOverhead)
		}
		if n := runtime.NumGoroutine(); n > 100 {
			t.Errorf("%d goroutines", n)
		}
		// The next one has no room.
		b.p.deliver(message("0"))
		synctest.Wait()
		if n := b.waiting.Len(); n != all {
			t.Errorf("%d copies wait beyond the bound", n)
		}
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		sent := b.p.outgoing()
		if len(sent) != all+1 {
			t.Fatalf("%d were published", len(sent))
		}
		for i := range all {
			if got := string(sent[i].Payload); got != fmt.Sprint(all-1-i) {
				t.Fatalf("copy %d is %s", i, got)
			}
		}
	})
}

// heapInUse is what is in use.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what pools have let go in the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The bound of bytes counts payload and headers.
func TestWaitingBytes(t *testing.T) { // D3, S-GEN-87
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(later(time.Minute)), func(s *setup) {
			s.waiting.Bytes = 100_000
			s.o.Keep = func(*Said, *core.Plan) bool { return false }
		})
		synctest.Wait()
		for range 3 {
			b.p.deliver(message(strings.Repeat("x", 60_000)))
			synctest.Wait()
		}
		if n := b.waiting.Len(); n != 2 { // exceeded by one at most
			t.Errorf("%d copies wait", n)
		}
		if n := b.p.unsettled(); n != 1 {
			t.Errorf("%d keep their credit", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []string{"ACK; PUBLISH+1m(own,1)", "ACK; PUBLISH+1m(own,1)", "HOLD(1m); PUBLISH(own,1); ACK"}
		got := b.texts()
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		b.waiting.mu.Lock()
		defer b.waiting.mu.Unlock()
		if b.waiting.room != (room{}) {
			t.Errorf("room is still taken: %+v", b.waiting.room)
		}
	})
}

// A copy that is due while its endpoint is down leaves with the next
// generation, within the publish limit.
func TestWaitingWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(later(time.Second)))
		synctest.Wait()
		b.p.deliver(message("x"), message("y"))
		synctest.Wait()
		b.crash()
		time.Sleep(publishLimit / 2)
		p := newPlugin()
		b.attach(p)
		synctest.Wait()
		if got := len(p.outgoing()); got != 2 {
			t.Errorf("%d left", got)
		}
		if c := b.lane.Counters(); c.Retried != 2 || c.Lost != 0 {
			t.Errorf("counters %+v", c)
		}
	})
}

// The counts add up at every moment.
func TestCountersAddUp(t *testing.T) { // E-14
	synctest.Test(t, func(t *testing.T) {
		outcomes := []core.Outcome{{Kind: core.OutcomeAck}, retry(), later(time.Second), {Kind: core.OutcomeDrop}, {}}
		n := 0
		b := newBench(t, kindA, func(*Delivery) Said {
			n++
			time.Sleep(time.Millisecond)
			return Said{Outcome: outcomes[n%len(outcomes)]}
		}, func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		for range 100 {
			b.p.deliver(message("x"), message("y"), message("z"))
			time.Sleep(2 * time.Millisecond)
			c := b.lane.Counters()
			sum := c.Acked + c.Retried + c.Dropped + c.DeadLettered + c.Parked + c.Released + c.Stale + c.InWork
			if c.Received != sum || c.InWork > c.Received || c.Waiting > c.InWork {
				t.Fatalf("counters %+v", c)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := Counters{Received: 300, Acked: 60, Retried: 120, Dropped: 60, Released: 60}
		if diff := cmp.Diff(want, b.lane.Counters()); diff != "" {
			t.Error(diff)
		}
	})
}
