// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// state is where a message is.
type state uint8

const (
	stateHanded   state = iota // the host has it
	stateHeld                  // the host has handed it back for later: pluginapi.Held has it
	stateReleased              // the host has let go of it; the ack timeout brings it back
	stateQueued                // it waits here to be handed out once more
	stateAcking                // settled: its ack waits, or is on the way
	stateAcked                 // the broker has taken its ack; it may still come once more
	stateOver                  // none of these: void, given back or forgotten
)

// entry is one delivery of a message: the handle that the host gives back with its
// verdict. Each delivery has one of its own and none is used again, so a late verdict
// never meets another delivery.
type entry struct {
	lane     *lane
	msg      *wire.Message // where the intake itself delivers again; nil elsewhere
	batch    *batch        // of the entry that the message lies in; nil = it is one by itself
	at       position
	epoch    uint64 // of the consumer that read it
	since    time.Time
	prev     *entry // of Intake.hands
	next     *entry
	size     int
	state    state
	spent    bool // the broker has its ack, or another entry stands for it: there is no late one
	late     bool // the ack of an earlier delivery was late and counts: it comes no more
	inHands  bool // it stands in Intake.hands
	inBatch  bool // it counts in batch.hand
	returns  bool // a rewind has made it void, and it comes again
	retained bool // its size counts in Intake.retained
}

// block is how many entries are allocated at once. One that stays keeps its whole
// block, so it is small.
const block = 16

// blocks hands out entries.
type blocks struct{ free []entry }

func (b *blocks) take() *entry {
	if len(b.free) == 0 {
		b.free = make([]entry, block)
	}
	e := &b.free[0]
	b.free = b.free[1:]
	return e
}

// list is entries in the order in which they were handed out, oldest first.
type list struct{ first, last *entry }

func (l *list) push(e *entry) {
	e.prev, e.next, e.inHands = l.last, nil, true
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
}

func (l *list) remove(e *entry) {
	if !e.inHands {
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
	e.prev, e.next, e.inHands = nil, nil, false
}
