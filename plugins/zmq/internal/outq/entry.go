// SPDX-License-Identifier: Apache-2.0

package outq

import "unsafe"

// entry is one message that waits.
type entry struct {
	head   []byte  // what is copied of it, in chunk
	chunk  *chunk  // nil where nothing is copied
	from   int     // of head in chunk
	tail   []byte  // what is written from where it lies
	shared *Shared // that tail belongs to
	fanned bool    // one of several copies: nobody else takes it when it is not written
	size   int     // on the wire
	name   string
	ticket Ticket
}

// place is the memory of one entry in a ring, of which up to half is not used.
const place = 2 * int64(unsafe.Sizeof(entry{}))

// cost is what a shared message takes in this queue alone.
func (e *entry) cost() int64 {
	if e.shared != nil {
		return place
	}
	return place + int64(len(e.head))
}

// Unsent is a message that was not written whole, ready to be given to another
// queue by PushUnsent.
type Unsent struct {
	head    []byte
	payload []byte // the caller's, as given to Push
	name    string
	ticket  Ticket
}

// Name returns the name that the message was published under.
func (u *Unsent) Name() string { return u.name }

// Ticket returns who is told what becomes of the message.
func (u *Unsent) Ticket() Ticket { return u.ticket }

// Size returns the message's bytes on the wire.
func (u *Unsent) Size() int { return len(u.head) + len(u.payload) }

// unsent returns the message with memory of its own.
func (e *entry) unsent() Unsent {
	return Unsent{head: append([]byte(nil), e.head...), payload: e.tail, name: e.name, ticket: e.ticket}
}

// ringLeast is the room of a ring that is kept while it is empty.
const ringLeast = 64

// ring is a queue of entries that grows.
type ring struct {
	slots []entry // a power of two
	first int
	n     int
}

func (r *ring) len() int { return r.n }

// at returns the i-th entry.
func (r *ring) at(i int) *entry { return &r.slots[(r.first+i)&(len(r.slots)-1)] }

func (r *ring) push(e entry) {
	if r.n == len(r.slots) {
		slots := make([]entry, max(ringLeast, 2*r.n))
		for i := range r.n {
			slots[i] = *r.at(i)
		}
		r.slots, r.first = slots, 0
	}
	r.n++
	*r.at(r.n - 1) = e
}

// pop forgets the first entry.
func (r *ring) pop() {
	*r.at(0) = entry{}
	r.first = (r.first + 1) & (len(r.slots) - 1)
	r.n--
}

// cut forgets all entries from the n-th on.
func (r *ring) cut(n int) {
	for i := n; i < r.n; i++ {
		*r.at(i) = entry{}
	}
	r.n = n
}

// shrink gives back what an empty ring no longer needs.
func (r *ring) shrink() {
	if r.n == 0 && len(r.slots) > ringLeast {
		*r = ring{}
	}
}
