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
	lane *lane
	by   *producer // that has it, nil = none yet
	done func(int, pluginapi.Receipt)
	i    int
	due  time.Duration // of the outbox's clock
	size int64         // of the payload

	in         *list // queue or sent
	prev, next *entry
	answered   bool

	name    string
	message *pulsar.ProducerMessage
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

// take returns an entry for a message.
func (o *Outbox) take(p *Post) *entry {
	e, _ := o.free.Get().(*entry)
	if e == nil {
		e = &entry{}
		e.callback = e.returned
	}
	at := p.At
	if at.IsZero() {
		at = time.Now()
	}
	e.due = at.Sub(o.born) + o.c.Timeout
	e.name, e.message, e.done, e.i, e.size = p.Name, p.Message, p.Done, p.I, int64(len(p.Message.Payload))
	if o.copy && e.size > 0 {
		// The library reads it when it writes, which may be after the receipt.
		e.payload = append(e.payload[:0], e.message.Payload...)
		e.message.Payload = e.payload
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

// answer takes an entry off its list and returns its receipt to be given; o.mu is
// held.
func (e *entry) answer(r pluginapi.Receipt) answer {
	o := e.lane.o
	e.answered = true
	e.leave()
	o.bytes -= e.size
	return answer{done: e.done, i: e.i, receipt: r}
}

// finish has the receipt of an entry given once o.mu is free; o.mu is held.
func (e *entry) finish(r pluginapi.Receipt) {
	o := e.lane.o
	o.answers = append(o.answers, e.answer(r))
	if e.by == nil {
		o.put(e)
	}
}
