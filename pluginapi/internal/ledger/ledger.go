// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps the unsettled deliveries of one stream: their ids, what
// belongs to each, and the count of messages and bytes that credit is about.
package ledger

import "slices"

// The bounds of the ring. Entries that the ring has come round to while they
// are still unsettled go to a map, so one delivery held for long neither grows
// the ring nor costs those after it anything.
const (
	minRing = 64
	maxRing = 1 << 16
)

// Entry is one unsettled delivery.
type Entry struct {
	ID      uint64 // 0 = free
	Handle  any
	Scope   string
	Bytes   int64
	Profile uint32
	Claimed bool // a verdict that ends it is being carried out
	Later   bool // that verdict is answered as accepted later
	Want    bool // its result is wanted then
	Early   bool // it was accepted before that answer came
}

// Ledger gives out ids from 1 and finds entries by id. It is not safe for
// concurrent use.
type Ledger struct {
	ring     []Entry
	old      map[uint64]*Entry
	next     uint64
	messages int
	bytes    int64
}

// New returns a ledger for a window of the given number of messages.
func New(window uint64) *Ledger {
	return &Ledger{ring: make([]Entry, ringSize(window)), next: 1}
}

// ringSize is twice the window as a power of two, within its bounds: ids run
// ahead of the oldest unsettled one by as much as the window, and a little
// more where verdicts come out of order.
func ringSize(window uint64) int {
	size := minRing
	for size < maxRing && uint64(size) < 2*min(window, maxRing) {
		size *= 2
	}
	return size
}

// Fit grows the ring for a window. It never shrinks.
func (l *Ledger) Fit(window uint64) {
	size := ringSize(window)
	if size <= len(l.ring) {
		return
	}
	former := l.ring
	l.ring = make([]Entry, size)
	for i := range former {
		if e := &former[i]; e.ID != 0 {
			l.ring[e.ID&uint64(size-1)] = *e
		}
	}
}

// Next returns the id that the next entry gets.
func (l *Ledger) Next() uint64 { return l.next }

// Outstanding returns the unsettled messages and their bytes.
func (l *Ledger) Outstanding() (messages int, bytes int64) { return l.messages, l.bytes }

// Add enters a delivery and returns its id.
func (l *Ledger) Add(e Entry) uint64 {
	slot := &l.ring[l.next&uint64(len(l.ring)-1)]
	if slot.ID != 0 {
		if l.old == nil {
			l.old = make(map[uint64]*Entry)
		}
		kept := *slot
		l.old[kept.ID] = &kept
	}
	e.ID = l.next
	*slot = e
	l.next++
	l.messages++
	l.bytes += e.Bytes
	return e.ID
}

// Find returns the entry of an id, nil when it is not unsettled. It is valid
// until the next Add, Fit or Remove.
func (l *Ledger) Find(id uint64) *Entry {
	if id == 0 {
		return nil
	}
	if e := &l.ring[id&uint64(len(l.ring)-1)]; e.ID == id {
		return e
	}
	return l.old[id]
}

// Remove forgets an id. It reports whether it was there.
func (l *Ledger) Remove(id uint64) bool {
	e := l.Find(id)
	if e == nil {
		return false
	}
	l.messages--
	l.bytes -= e.Bytes
	if slot := &l.ring[id&uint64(len(l.ring)-1)]; slot == e {
		*e = Entry{}
	} else {
		delete(l.old, id)
	}
	return true
}

// Within appends the unsettled ids from first to last, ascending.
func (l *Ledger) Within(ids []uint64, first, last uint64) []uint64 {
	last = min(last, l.next-1)
	if first == 0 {
		first = 1
	}
	if first > last {
		return ids
	}
	if len(l.old) > 0 {
		from := len(ids)
		for id := range l.old {
			if id >= first && id <= last {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids[from:])
	}
	// Whatever the ring can hold lies less than its length behind next.
	if size := uint64(len(l.ring)); l.next > size {
		first = max(first, l.next-size)
	}
	for id := first; id <= last; id++ {
		if l.ring[id&uint64(len(l.ring)-1)].ID == id {
			ids = append(ids, id)
		}
	}
	return ids
}

// All appends all unsettled ids, ascending.
func (l *Ledger) All(ids []uint64) []uint64 { return l.Within(ids, 1, l.next-1) }
