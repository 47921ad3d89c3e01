// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"time"
)

// peek returns the size of the next message; the lock is held, as in all of
// this file.
func (q *queue) peek() (size uint64, ok bool) {
	if len(q.ready.all) == 0 || q.journal == nil {
		return 0, false
	}
	return q.ready.all[0].size, true
}

// take hands the next message out; counted writes down that it was delivered.
func (q *queue) take(swaps bool) *entry {
	e := heap.Pop(&q.ready).(*entry)
	if q.taken++; swaps && q.taken%4 == 1 && len(q.ready.all) > 0 {
		other := heap.Pop(&q.ready).(*entry)
		heap.Push(&q.ready, e)
		e = other
	}
	return e
}

// counted writes down that messages were delivered, before they are sent. After
// an error they are back in their places.
func (q *queue) counted(es []*entry) error {
	var records []byte
	for _, e := range es {
		records = record(records, opTake, []uint64{e.seq}, nil)
	}
	if err := q.journal.write(records); err != nil {
		for _, e := range es {
			q.place(e)
		}
		return err
	}
	for _, e := range es {
		e.count++
		e.due = 0
	}
	return nil
}

// done forgets a message.
func (q *queue) done(e *entry) error {
	if q.journal == nil {
		return errClosed
	}
	return q.journal.write(record(nil, opDone, []uint64{e.seq}, nil))
}

// back takes a message back, to be delivered after delay.
func (q *queue) back(e *entry, delay time.Duration) error {
	if q.journal == nil {
		return errClosed
	}
	due := int64(0)
	if delay > 0 {
		due = time.Now().Add(delay).UnixNano()
		if err := q.journal.write(record(nil, opBack, []uint64{e.seq, uint64(due)}, nil)); err != nil {
			return err
		}
	}
	e.due = due
	q.place(e)
	return nil
}

// entries is a heap.
type entries struct {
	all  []*entry
	less func(a, b *entry) bool
}

func bySeq(a, b *entry) bool { return a.seq < b.seq }
func byDue(a, b *entry) bool { return a.due < b.due }

// Len, Less, Swap, Push and Pop are container/heap's.
func (h *entries) Len() int           { return len(h.all) }
func (h *entries) Less(i, j int) bool { return h.less(h.all[i], h.all[j]) }
func (h *entries) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *entries) Push(x any)         { h.all = append(h.all, x.(*entry)) }

func (h *entries) Pop() any {
	last := len(h.all) - 1
	e := h.all[last]
	h.all[last] = nil
	h.all = h.all[:last]
	return e
}
