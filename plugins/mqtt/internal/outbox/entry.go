// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/longshore-go/longshore/pluginapi"
)

// entry is one message without a receipt. Its memory is used again.
type entry struct {
	post  Post
	size  int
	since time.Time // it was added while the link was down; zero = while it was up

	id   uint16 // 0 = none yet
	end  int    // of its packet, from the beginning of its batch
	mark uint64 // the link has it once so many bytes are written

	given     bool // to the link
	sent      bool // whole, in this session: it is sent again with DUP
	maybe     bool // whole, at some time: the server may have it
	rel       bool // its PUBREC is here
	recovered bool // its PUBREL went out over a later link
	tried     bool // a link that has ended had begun with it
	unrouted  bool // nobody has subscribed to its topic

	in         *list // queue or released
	prev, next *entry
	follows    *entry // in unproved
}

// list is a list of entries.
type list struct{ first, last *entry }

func (l *list) push(e *entry) {
	e.in, e.prev, e.next = l, l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
}

func (l *list) remove(e *entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.in, e.prev, e.next = nil, nil, nil
}

// take returns an empty entry; o.mu is held.
func (o *Outbox) take() *entry {
	e := o.free
	if e == nil {
		return &entry{}
	}
	o.free, e.next = e.next, nil
	return e
}

// answer is a receipt with who takes it.
type answer struct {
	done    func(int, pluginapi.Receipt)
	i       int
	receipt pluginapi.Receipt
}

func (a *answer) give() { a.done(a.i, a.receipt) }

// finish ends an entry, whose receipt is given once o.mu is free; o.mu is held.
func (o *Outbox) finish(e *entry, r pluginapi.Receipt) {
	o.detach(e)
	o.suspect.acquit(e)
	if e.id != 0 {
		if e.given || e.rel {
			o.inflight--
		}
		o.ids.put(e.id)
	}
	o.count--
	o.bytes -= int64(e.size)
	o.answers = append(o.answers, answer{done: e.post.Done, i: e.post.I, receipt: r})
	*e = entry{next: o.free}
	o.free = e
	if o.count == 0 {
		o.stopTimer()
	}
}

// detach takes an entry off its list; o.mu is held.
func (o *Outbox) detach(e *entry) {
	if o.next == e {
		o.next = e.next
	}
	e.in.remove(e)
}

// ids are as many packet identifiers as the window has room for, each with its
// entry. The one that was free longest is given first.
type ids struct {
	base    int      // the first is the one behind it
	entries []*entry // by id less base
	dirty   []bool   // likewise: a former process may have a message under it at the server
	ring    []uint16
	first   int
	n       int
}

func (s *ids) init(n, first int) {
	s.base = first - 1
	s.entries, s.dirty = make([]*entry, n+1), make([]bool, n+1)
	s.ring, s.n = make([]uint16, n), n
	for i := range s.ring {
		s.ring[i] = uint16(first + i)
	}
}

// get gives e an id; one is free wherever there is room in the window.
func (s *ids) get(e *entry) {
	e.id = s.ring[s.first]
	s.entries[int(e.id)-s.base] = e
	s.first = (s.first + 1) % len(s.ring)
	s.n--
}

// put takes an id back.
func (s *ids) put(id uint16) {
	s.entries[int(id)-s.base] = nil
	s.ring[(s.first+s.n)%len(s.ring)] = id
	s.n++
}

// of returns the entry with an id, nil = none.
func (s *ids) of(id uint16) *entry {
	if i := int(id) - s.base; i > 0 && i < len(s.entries) {
		return s.entries[i]
	}
	return nil
}

// soiled reports whether the id that is given next is dirty.
func (s *ids) soiled() bool { return s.dirty[int(s.ring[s.first])-s.base] }

// scrubbed notes that an id is not dirty any more. It reports false where it was
// not.
func (s *ids) scrubbed(id uint16) bool {
	i := int(id) - s.base
	if i <= 0 || i >= len(s.dirty) || !s.dirty[i] {
		return false
	}
	s.dirty[i] = false
	return true
}

// soil says of all ids whether a former process may have used them.
func (s *ids) soil(dirty bool) {
	for i := range s.dirty[1:] {
		s.dirty[i+1] = dirty
	}
}
