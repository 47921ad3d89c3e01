// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"container/heap"
	"time"
)

// alarm is something that happens later. Alarms of one moment ring in the order
// in which they were set, so that in a synctest bubble, where several are due at
// once, nothing is left to chance.
type alarm struct {
	b      *Broker
	at     time.Time
	number uint64
	ring   func()
	index  int // in the heap, -1 = not in it
}

// after sets an alarm. ring is called with the broker's lock held, and what is
// ready then is delivered. The broker's lock is held.
func (b *Broker) after(d time.Duration, ring func()) *alarm {
	b.alarmed++
	a := &alarm{b: b, at: time.Now().Add(d), number: b.alarmed, ring: ring}
	heap.Push(&b.alarms, a)
	if a.index == 0 {
		b.wind()
	}
	return a
}

// Stop takes the alarm away. The broker's lock is held.
func (a *alarm) Stop() {
	if a.index >= 0 {
		heap.Remove(&a.b.alarms, a.index)
	}
}

// wind sets the clock to the first alarm.
func (b *Broker) wind() {
	if b.clock != nil {
		b.clock.Stop()
	}
	if len(b.alarms) > 0 {
		b.clock = time.AfterFunc(time.Until(b.alarms[0].at), b.rings)
	}
}

// rings lets all alarms ring that are due.
func (b *Broker) rings() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for now := time.Now(); len(b.alarms) > 0 && !b.alarms[0].at.After(now); {
		heap.Pop(&b.alarms).(*alarm).ring()
	}
	b.wind()
	b.pump()
}

// alarmHeap orders alarms by time.
type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }

func (h alarmHeap) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].number < h[j].number
}

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	a.index = -1
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
