// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// lane is one topic. All of it is under the outbox's mu.
type lane struct {
	o     *Outbox
	topic topic.Name
	base  string // the topic's name in full, without a partition

	queue    list // that the library does not have, in order
	producer *producer
	sending  bool // somebody gives the library what is in the queue
	making   bool // a producer is being made
	waits    bool // for a slot
	// former is closed once the producer before is closed, nil = there was none.
	former <-chan struct{}
	// why says what keeps the queue from being sent, nil = nothing that is known.
	why *core.Fault
}

// pump gives the library what there is room for, and has a producer made where
// there is none. o.mu is held, and free at times.
func (l *lane) pump() {
	if l.sending {
		return
	}
	l.sending = true
	for l.queue.first != nil {
		p := l.producer
		if p == nil {
			l.need()
			break
		}
		if p.takes(l.queue.first) {
			l.hand(p, l.queue.first)
		} else if l.producer != nil {
			break
		}
	}
	l.sending = false
	l.rest()
}

// hand gives the library an entry; o.mu is held, but not meanwhile.
func (l *lane) hand(p *producer, e *entry) {
	e.leave()
	e.by = p
	p.sent.push(e)
	p.lent++
	p.numbered = e.message.SequenceID != nil
	p.current = e
	p.began.Store(false)
	m, callback := e.message, e.callback
	l.o.mu.Unlock()
	ok := p.send(m, callback)
	l.o.mu.Lock()
	if !ok {
		l.unhand(p, e)
	}
}

// unhand takes back what the library has not taken: its producer is closed. o.mu is
// held.
func (l *lane) unhand(p *producer, e *entry) {
	p.lent--
	e.leave()
	e.by = nil
	if e.answered {
		l.o.put(e)
	} else {
		l.queue.unshift(e)
	}
	p.discard()
}

// send calls SendAsync, and reports false where the library closed the producer at
// that moment: then it panics, on sending to a closed channel, and has not taken
// the message.
func (p *producer) send(m *pulsar.ProducerMessage, f func(pulsar.MessageID, *pulsar.ProducerMessage, error)) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			p.lane.o.c.Log.Debug("Pulsar producer closed while it was used", "topic", p.lane.base, "panic", v)
		}
	}()
	p.library.SendAsync(context.Background(), m, f)
	return true
}

// returned is called by the library, once for each entry that it has taken, from
// any goroutine.
func (e *entry) returned(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
	l, p := e.lane, e.by
	o := l.o
	o.mu.Lock()
	if err != nil && p.current == e && !p.began.Load() && errors.Is(err, pulsar.ErrProducerClosed) {
		// It was closed before the call.
		l.unhand(p, e)
		o.leave()
		return
	}
	p.lent--
	if err != nil && !untouched(err) {
		p.discard() // the library has closed it, or will get no further
	}
	var due answer
	owed := !e.answered
	if owed {
		due = e.answer(p.receipt(e, id, err))
	}
	o.put(e)
	l.pump()
	o.leave()
	if owed {
		o.give(&due)
	}
}

// rest closes the lane's producer where somebody waits for its slot, and has the
// lane forgotten where it has nothing; o.mu is held.
func (l *lane) rest() {
	p := l.producer
	idle := l.queue.first == nil && !l.sending
	if p != nil && p.lent == 0 && idle {
		p.used = time.Now()
	}
	if p != nil && p.lent == 0 && !l.sending && (p.draining || idle && len(l.o.waiting) > l.o.leaving) {
		p.discard()
		p = nil
		if !idle {
			l.need()
		}
	}
	if p == nil && idle && !l.making && !l.waits && l.former == nil {
		delete(l.o.lanes, l.topic)
		if l.o.last == l {
			l.o.last = nil
		}
	}
}

// refuse refuses all that the library does not have; o.mu is held.
func (l *lane) refuse(why *core.Fault) {
	for e := l.queue.first; e != nil; e = l.queue.first {
		e.finish(pluginapi.Refused(because(e.name, why)))
	}
}
