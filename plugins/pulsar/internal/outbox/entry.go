// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/pluginapi"
)

// maxCopy is the largest copy of a payload that a free entry keeps.
const maxCopy = 16 << 10

// entry is one message. It is open until its receipt is given, and lent until the
// library has called back; then it is used again. One that the library forgets is
// left to the garbage collector.
type entry struct {
	post Post
	lane *lane
	size int64 // of the payload
	due  time.Time

	by       *producer // that has it, nil = none yet
	answered bool

	in                 *list // queue or sent
	prev, next         *entry
	prevOpen, nextOpen *entry

	payload []byte // copy of the message's
	// returned as the function that the library calls.
	callback func(pulsar.MessageID, *pulsar.ProducerMessage, error)
}

// list is a list of entries in the order they were added.
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

// unshift puts an entry back before all others.
func (l *list) unshift(e *entry) {
	e.in, e.prev, e.next = l, nil, l.first
	if l.first == nil {
		l.last = e
	} else {
		l.first.prev = e
	}
	l.first = e
}

// leave takes an entry off its list, if it is in one.
func (e *entry) leave() {
	l := e.in
	if l == nil {
		return
	}
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

// openList is the list of all entries without a receipt, by when they are due: all
// have the same time.
type openList struct{ first, last *entry }

func (l *openList) push(e *entry) {
	e.prevOpen, e.nextOpen = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.nextOpen = e
	}
	l.last = e
}

func (l *openList) remove(e *entry) {
	if e.prevOpen == nil {
		l.first = e.nextOpen
	} else {
		e.prevOpen.nextOpen = e.nextOpen
	}
	if e.nextOpen == nil {
		l.last = e.prevOpen
	} else {
		e.nextOpen.prevOpen = e.prevOpen
	}
	e.prevOpen, e.nextOpen = nil, nil
}

// take returns an entry for a message.
func (o *Outbox) take(p *Post) *entry {
	e, _ := o.free.Get().(*entry)
	if e == nil {
		e = &entry{}
		e.callback = e.returned
	}
	e.post, e.size, e.due = *p, int64(len(p.Message.Payload)), time.Now().Add(o.c.Timeout)
	if o.copy && e.size > 0 {
		// The library reads it when it writes, which may be after the receipt.
		e.payload = append(e.payload[:0], p.Message.Payload...)
		p.Message.Payload = e.payload
	}
	return e
}

// put takes back an entry that nobody has any more.
func (o *Outbox) put(e *entry) {
	payload := e.payload[:0]
	if cap(payload) > maxCopy {
		payload = nil
	}
	*e = entry{payload: payload, callback: e.callback}
	o.free.Put(e)
}

// answer is a receipt with who takes it.
type answer struct {
	done    func(int, pluginapi.Receipt)
	i       int
	receipt pluginapi.Receipt
}

// answer takes an entry off all lists and returns its receipt to be given; o.mu is
// held.
func (e *entry) answer(r pluginapi.Receipt) answer {
	o := e.lane.o
	e.answered = true
	e.leave()
	o.open.remove(e)
	o.bytes -= e.size
	return answer{done: e.post.Done, i: e.post.I, receipt: r}
}

// finish has the receipt of an entry given once o.mu is free; o.mu is held.
func (e *entry) finish(r pluginapi.Receipt) {
	o := e.lane.o
	o.answers = append(o.answers, e.answer(r))
	if e.by == nil {
		o.put(e)
	}
}
