// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// entry is one message, until its receipt is given.
type entry struct {
	lane *lane
	part *part // that it goes to, nil = not decided yet
	done func(int, pluginapi.Receipt)
	i    int
	due  time.Duration // of the outbox's clock
	size int64         // of the payload
	room int64         // about what it takes of a batch, and not less; 0 = there are none

	in         *list
	prev, next *entry

	name    string
	message wire.Outgoing

	// tries is how often it was written to a connection. From the first on it is one of
	// count messages, from 0, that are one entry to the broker, with its first number.
	tries    int
	sequence uint64
	index    int32
	count    int32
	taken    bool // the sender has given it a number that a message without one has
}

// follows reports whether an entry is of the same batch as the one before it. Where
// the sender numbers messages, one number may stand twice.
func (e *entry) follows(before *entry) bool {
	return e.tries > 0 && e.sequence == before.sequence && e.index > before.index
}

// weight is about what a message takes of a batch, in bytes, and not less.
func weight(m *wire.Outgoing) int64 {
	n := int64(len(m.Payload) + len(m.Key) + len(m.OrderingKey) + weightOfOne)
	for i := range m.Properties {
		n += int64(len(m.Properties[i].Name)+len(m.Properties[i].Value)) + weightOfProperty
	}
	return n
}

// The bytes of lengths, numbers and tags in a batch.
const (
	weightOfOne      = 64
	weightOfProperty = 16
)

// list is a list of entries in the order they were added.
type list struct {
	first, last *entry
	n           int
}

func (l *list) push(e *entry) {
	e.in, e.prev, e.next = l, l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.n++
}

// unshift puts an entry before all others.
func (l *list) unshift(e *entry) {
	e.in, e.prev, e.next = l, nil, l.first
	if l.first == nil {
		l.last = e
	} else {
		l.first.prev = e
	}
	l.first = e
	l.n++
}

// leave takes an entry off its list.
func (e *entry) leave() {
	l := e.in
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
	l.n--
}

// take returns an entry for a message.
func (o *Outbox) take(p *Post) *entry {
	e, _ := o.free.Get().(*entry)
	if e == nil {
		e = &entry{}
	}
	at := p.At
	if at.IsZero() {
		at = time.Now()
	}
	e.due = at.Sub(o.born) + o.c.Timeout
	e.name, e.message, e.done, e.i, e.size = p.Name, p.Message, p.Done, p.I, int64(len(p.Message.Payload))
	if o.c.Batch > 0 {
		e.room = weight(&e.message)
	}
	return e
}

// put takes back an entry that nobody has any more.
func (o *Outbox) put(e *entry) {
	*e = entry{}
	o.free.Put(e)
}

// answer is a receipt with who takes it.
type answer struct {
	done    func(int, pluginapi.Receipt)
	i       int
	receipt pluginapi.Receipt
}

type answers struct{ list []answer }

// finish has the receipt of an entry given once o.mu is free; o.mu is held.
func (e *entry) finish(r pluginapi.Receipt) {
	l := e.lane
	o := l.o
	e.leave()
	if e.part != nil {
		l.busy--
	}
	o.bytes -= e.size
	if o.due == nil {
		if o.due, _ = o.lists.Get().(*answers); o.due == nil {
			o.due = new(answers)
		}
	}
	o.due.list = append(o.due.list, answer{done: e.done, i: e.i, receipt: r})
	o.put(e)
}
