// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// part is the producer of a topic, or of one of its partitions. All of it is under
// the outbox's mu.
type part struct {
	lane  *lane
	index int32  // of the partition, topic.NoPartition where the topic has none
	name  string // the topic or partition in full

	// queue is what is to be written, and sent what was written and has no receipt.
	// When the session ends what was sent is put before the queue: it is written
	// again, under the numbers that it has.
	queue, sent list
	gathering   gathering

	session *session // registered at a broker, nil = none
	opening bool     // somebody opens one
	pause   time.Duration
	// doubt says that a message was given up that was written. Nothing more is until
	// the broker answers anything, so that it can be refused.
	doubt bool
	why   *core.Fault // why there is no session, nil = nothing that is known
	// single says that there are no batches any more: the topic has refused one, which
	// may have been larger than its policies let a message be.
	single bool

	given  string        // the last session's name, "" = there was none
	inUse  time.Duration // since when the name is in use to the broker that is asked for a session, or never
	epoch  uint64        // how often one was asked for
	number uint64        // of the next message
	// ours is behind the last number that a message without one was given, and theirs
	// behind the highest that a sender has given, or that the broker had before.
	ours, theirs uint64
}

// add takes a message; o.mu is held.
func (p *part) add(e *entry) {
	p.queue.push(e)
	p.gathering.add(p, e)
	p.pump()
}

// pump writes what may be written, or has a session opened; o.mu is held.
func (p *part) pump() {
	if p.queue.first == nil {
		return
	}
	s := p.session
	if s == nil {
		p.need()
		return
	}
	for p.queue.first != nil && !s.closing && !p.doubt && p.sent.n < p.lane.o.c.Window && s.conn.Room() {
		n := p.next()
		if n == 0 {
			return
		}
		p.write(s, n)
	}
}

// need has a session opened; o.mu is held.
func (p *part) need() {
	o := p.lane.o
	if p.opening || o.life.Err() != nil {
		return
	}
	p.opening = true
	p.lane.work++
	o.work.Go(p.open)
}

// confirm answers the messages that a receipt is for, which has the first of a batch's
// numbers. Those that were given up are not there any more. Brokers answer in order, but
// for messages that they have already.
func (p *part) confirm(r *wire.SendReceipt) {
	e := p.sent.first
	for e != nil && e.sequence != r.Sequence {
		e = e.next
	}
	for e != nil {
		next := e.next
		if next != nil && !next.follows(e) {
			next = nil
		}
		if answer := pluginapi.Confirmed(); r.Ledger < 0 && e.taken {
			e.tries-- // this time it was not stored
			e.finish(e.without(numberTaken(e.sequence)))
		} else {
			answer.Position = p.position(e, r)
			e.finish(answer)
		}
		e = next
	}
}

// numberTaken is the fault of a message that a broker with deduplication drops for
// another one.
func numberTaken(number uint64) *core.Fault {
	f := fault.Refusal(core.FaultConflict, "the broker has the number %d of a message without sequence_id, and drops this one", number)
	f.Diagnostics = []core.Diagnostic{{Fix: "give all messages of the topic a sequence_id, or none"}}
	return f
}

// refuseSent answers the messages that the broker does not take.
func (p *part) refuseSent(number uint64, why *core.Fault) {
	e := p.find(number)
	if e != nil && e.count > 1 && why.Code == core.FaultUnsupported {
		p.single = true
		of := *why
		of.Transient, of.Diagnostics = true, []core.Diagnostic{{Fix: "publish it again: it was one of a batch, and the topic gets no more of them"}}
		why = &of
	}
	for e != nil {
		next := e.next
		if next != nil && !next.follows(e) {
			next = nil
		}
		e.tries-- // this time it was not stored
		e.finish(e.without(why))
		e = next
	}
}

// find returns the first message that was sent of the batch with a number, nil = there
// is none. An error has the last of a batch's numbers.
func (p *part) find(number uint64) *entry {
	for e := p.sent.first; e != nil; e = e.next {
		if number-e.sequence < uint64(e.count) { //nolint:gosec // above 0
			return e
		}
	}
	return nil
}

// renew ends the session and has another one opened for what is left. Receipts are
// taken until the broker has closed it. o.mu is held.
func (p *part) renew() {
	l, s := p.lane, p.session
	s.closing = true
	l.work++
	l.o.work.Go(func() {
		s.close()
		l.o.mu.Lock()
		l.work--
		p.lost(s)
		l.o.leave()
	})
}

// lost takes note that a session has ended; o.mu is held.
func (p *part) lost(s *session) {
	if s.gone = true; p.session == s {
		p.session = nil
		p.doubt = false
		for e := p.sent.last; e != nil; e = p.sent.last {
			e.leave()
			p.queue.unshift(e)
		}
		p.pump()
	}
	p.lane.rest()
}

// abandon answers all that waits, because no session can be had; o.mu is held. The
// topic may have changed, so it is looked up again for the next message.
func (p *part) abandon(why *core.Fault) {
	for e := p.queue.first; e != nil; e = p.queue.first {
		e.finish(e.without(why))
	}
	p.lane.draining = true
}
