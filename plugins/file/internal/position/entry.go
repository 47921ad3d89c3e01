// SPDX-License-Identifier: Apache-2.0

package position

// Entry is one delivery of a record. Its exported fields are not written again
// before TakeBack.
type Entry struct {
	Place   Place
	Attempt uint32 // how often the record was handed out, this time included

	stage      stage
	untracked  bool   // beyond MaxUnsettled: not in the file
	id         uint32 // in the active slot
	prev, next *Entry // in the order of the stream
}

// stage is what has become of a delivery.
type stage uint8

const (
	out      stage = iota // with the host
	released              // the host has let go of it; it comes back when the group is opened again
	waiting               // to be handed out again
	over                  // settled, handed out again as another one, or void
)

// entries is a list.
type entries struct {
	first, last *Entry
	all, n      int // n are tracked
}

func (l *entries) push(e *Entry) {
	e.prev, e.next = l.last, nil
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.all++
	if !e.untracked {
		l.n++
	}
}

func (l *entries) remove(e *Entry) {
	l.relink(e, e.next, e.prev)
	e.prev, e.next = nil, nil
	l.all--
	if !e.untracked {
		l.n--
	}
}

// replace puts a new entry in the place of an old one.
func (l *entries) replace(old, e *Entry) {
	e.prev, e.next = old.prev, old.next
	l.relink(old, e, e)
	old.prev, old.next = nil, nil
}

// relink lets e's neighbours, or the ends of the list, point to others: the one
// before to after, the one behind to before.
func (l *entries) relink(e, after, before *Entry) {
	if e.prev != nil {
		e.prev.next = after
	} else {
		l.first = after
	}
	if e.next != nil {
		e.next.prev = before
	} else {
		l.last = before
	}
}

// slab makes entries some at a time: few enough that one which stays for long
// does not keep much memory with it.
type slab []Entry

func (s *slab) take() *Entry {
	if len(*s) == 0 {
		*s = make([]Entry, 16)
	}
	e := &(*s)[0]
	*s = (*s)[1:]
	return e
}
