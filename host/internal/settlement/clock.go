// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"container/heap"
	"sync"
	"time"
)

// clock rings alarms in the order of their times: one heap, one timer, one
// goroutine. Whoever sets alarms bounds their number.
type clock struct {
	mu      sync.Mutex
	alarms  alarms
	sets    uint64        // alarms that were set so far
	wake    chan struct{} // the earliest alarm changed
	closing chan struct{}
	done    chan struct{}
}

// alarm is one entry of a clock. The zero value, with ring set, is not set.
type alarm struct {
	at    time.Time
	turn  uint64 // of those with one time the one that was set first rings first
	index int    // in the heap + 1; 0 = not set
	ring  func() // called by the clock's goroutine, without a lock; must not block
}

func newClock() *clock {
	c := &clock{
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go c.run()
	return c
}

// set sets a, or moves it when it is set.
func (c *clock) set(a *alarm, at time.Time) {
	c.mu.Lock()
	c.sets++
	a.at, a.turn = at, c.sets
	if a.index == 0 {
		heap.Push(&c.alarms, a)
	} else {
		heap.Fix(&c.alarms, a.index-1)
	}
	first := c.alarms[0] == a
	c.mu.Unlock()
	if first {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// unset takes a out. Its ring may be under way.
func (c *clock) unset(a *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.index != 0 {
		heap.Remove(&c.alarms, a.index-1)
	}
}

// close ends the goroutine. Alarms that are set do not ring any more.
func (c *clock) close() {
	c.mu.Lock()
	select {
	case <-c.closing:
	default:
		close(c.closing)
	}
	c.mu.Unlock()
	<-c.done
}

func (c *clock) run() {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, due := c.next()
		if due != nil {
			due.ring()
			continue
		}
		if wait < 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-c.wake:
		case <-c.closing:
			return
		}
	}
}

// next takes out the first alarm that is due, or says how long to wait for one;
// less than 0 = there is none.
func (c *clock) next() (time.Duration, *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closing:
		return -1, nil
	default:
	}
	if len(c.alarms) == 0 {
		return -1, nil
	}
	a := c.alarms[0]
	if wait := time.Until(a.at); wait > 0 {
		return wait, nil
	}
	heap.Pop(&c.alarms)
	return 0, a
}

// alarms is the heap.
type alarms []*alarm

func (h alarms) Len() int { return len(h) }
func (h alarms) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].turn < h[j].turn
}
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	*h = append(*h, a)
	a.index = len(*h)
}

func (h *alarms) Pop() any {
	n := len(*h) - 1
	a := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	a.index = 0
	return a
}
