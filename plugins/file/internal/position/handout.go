// SPDX-License-Identifier: Apache-2.0

package position

import "slices"

// Deliver notes records that are handed out for the first time, in the order of
// the stream, and where reading goes on behind them. It appends their entries to
// dst. They are to be handed out after Save.
func (t *Tracker) Deliver(dst []*Entry, records []Mark, next Place) []*Entry {
	if len(records) == 0 {
		return dst
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prepare()
	tracked := t.track(records, next)
	for i, r := range records {
		e := t.slab.take()
		*e = Entry{Place: r.Place, Attempt: 1, untracked: i >= tracked}
		if i < tracked {
			e.id = t.ids
			t.ids++
		}
		t.list.push(e)
		dst = append(dst, e)
	}
	return dst
}

// track moves on behind as many records as there is place for, and returns how
// many.
func (t *Tracker) track(records []Mark, next Place) int {
	if t.frozen {
		return 0
	}
	n := min(len(records), MaxUnsettled-t.list.n)
	if n < len(records) {
		t.frozen, next = true, records[n].Place
	}
	t.stored.next, t.moved, t.dirty = next, n == 0, true
	if n > 0 {
		t.stored.last, t.stored.hasLast = records[n-1], true
		t.changeDeliver(records[:n])
	}
	return n
}

// Waiting is the delivery that is to be handed out again before all others, nil
// if there is none. It stays so until Again or Drop.
func (t *Tracker) Waiting() *Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.head()
}

// Again notes that what Waiting returned is handed out again, and returns it as
// the delivery that it is now. It is to be handed out after Save.
func (t *Tracker) Again() *Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.queue.pop()
	e := t.slab.take()
	*e = *old
	e.Attempt, e.stage = more(old.Attempt), out
	t.list.replace(old, e)
	old.stage = over
	if !e.untracked {
		t.again = append(t.again, e.id)
		t.dirty = true
	}
	return e
}

// Drop settles what Waiting returned, since it cannot be read any more.
func (t *Tracker) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.queue.pop()
	e.stage = over
	t.list.remove(e)
	t.settle(e)
}

// Settle carries out verdicts, fills in their outcomes and writes what is
// settled. Where that fails it is settled all the same and written with the next
// change, or comes again after a crash.
func (t *Tracker) Settle(vs []Verdict) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range vs {
		v := &vs[i]
		v.Outcome = Done
		switch e := v.Entry; {
		case e.stage != out:
			v.Outcome = Stale
		case v.Requeue:
			e.stage = waiting
			t.queue.push(e)
		default:
			e.stage = over
			t.list.remove(e)
			t.settle(e)
		}
	}
	return t.flush()
}

// settle notes that e is settled.
func (t *Tracker) settle(e *Entry) {
	if !e.untracked {
		t.settled = append(t.settled, e.id)
		t.dirty = true
	}
}

// Release notes that no verdict follows on deliveries. They come again when the
// group is opened again.
func (t *Tracker) Release(es ...*Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range es {
		t.release(e)
	}
}

func (t *Tracker) release(e *Entry) {
	if e.stage == out {
		e.stage = released
		t.released++
	}
}

// TakeBack counts as none what is still with the host, but for what was released
// and what is named: nobody has begun it. No delivery and no verdict may follow.
// It is written at Close, as a new state beside the one that holds, so that
// whatever goes wrong on the way leaves it counted. What is not written yet is
// written before: that is shorter, and may succeed where Close fails.
func (t *Tracker) TakeBack(but ...*Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.flush()
	for _, e := range but {
		t.release(e)
	}
	for e := t.list.first; e != nil; e = e.next {
		if e.stage != out {
			continue
		}
		e.stage = over
		e.Attempt--
		if !e.untracked {
			t.whole, t.dirty = true, true
		}
	}
	return err
}

// queue is what is to be handed out again, in that order.
type queue struct {
	waits []*Entry
	begin int
}

func (q *queue) push(e *Entry) { q.waits = append(q.waits, e) }

func (q *queue) head() *Entry {
	if q.begin == len(q.waits) {
		return nil
	}
	return q.waits[q.begin]
}

func (q *queue) pop() *Entry {
	e := q.waits[q.begin]
	q.waits[q.begin] = nil
	q.begin++
	if q.begin > len(q.waits)/2 {
		q.waits = slices.Delete(q.waits, 0, q.begin)
		q.begin = 0
	}
	return e
}
