// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// The bounds of the own queue. Copies and dead letters stand for messages that
// were taken from somebody, so they have more room than what the service
// publishes itself, which can be told to wait.
const (
	maxPublished      = 65_536
	maxPublishedBytes = 64 << 20
	maxCopies         = 262_144
	maxCopiesBytes    = 512 << 20
)

// manyPublished is from where on the service's own messages go before those of
// peers: the peers can wait, and beyond its bound the service is refused.
const (
	manyPublished      = maxPublished / 8
	manyPublishedBytes = maxPublishedBytes / 8
)

// The share of everybody else while own copies wait: a message for each
// ownRun copies delivered, or for ownRounds times those that wait where that is
// more, as long as fewer than muchCopies wait. A subscription full of copies that
// fail for ever so takes new messages, and has at most muchCopies more of them in
// memory than its window.
const (
	ownRun     = 16
	ownRounds  = 4
	muchCopies = 4096
	muchBytes  = 16 << 20
)

// own is the own queue. Copies go first; what the service itself has published
// takes turns with the peers, as feed.
type own struct {
	copies    fifo
	published fifo
	feed      *feed
	listed    bool // feed is ready
}

// Own takes a message that this process publishes to its own subscription. It
// never waits, and what the message's bytes lie in may be used again at once.
// Beyond the bounds, 65,536 messages and 64 MiB of the service's own, 262,144
// and 512 MiB of copies and dead letters, it is refused for now; after Stop for
// good.
func (in *Intake) Own(m core.Message, p pluginapi.Purpose) *core.Fault {
	copies := p == pluginapi.PurposeRetry || p == pluginapi.PurposeDeadLetter
	in.mu.Lock()
	f := in.refused(&m, copies)
	in.mu.Unlock()
	if f != nil {
		return f
	}
	c := m.Clone()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped { // meanwhile
		return in.refused(&m, copies)
	}
	if copies {
		in.own.copies.push(c)
	} else {
		in.own.published.push(c)
		in.listOwn()
	}
	in.signal()
	return nil
}

// refused is why a message cannot be taken; in.mu is held.
func (in *Intake) refused(m *core.Message, copies bool) *core.Fault {
	q, messages, bytes := &in.own.published, maxPublished, int64(maxPublishedBytes)
	if copies {
		q, messages, bytes = &in.own.copies, maxCopies, maxCopiesBytes
	}
	switch {
	case in.stopped:
		return fault.Refusal(core.FaultClosed, "%s: the subscription %s of this process has stopped, and nobody else reads it", fault.PublishTo(m.Name), in.o.Name)
	case !q.fits(messages, bytes):
		return fault.Passing(core.FaultExhausted, "publish more slowly, or let the subscription handle more at a time",
			"%s: %d messages of %d bytes wait for the subscription of this process that reads it", fault.PublishTo(m.Name), q.len(), q.bytes)
	}
	return nil
}

// listOwn makes the service's own messages ready; in.mu is held.
func (in *Intake) listOwn() {
	if !in.own.listed && in.own.published.len() > 0 {
		in.own.listed = true
		in.ready.push(in.own.feed)
	}
}

// first reports whether the service's own messages go before those of peers.
func (o *own) first() bool {
	return o.published.len() >= manyPublished || o.published.bytes >= manyPublishedBytes
}

// share reports whether it is another one's turn although copies wait, since
// own deliveries after the last time.
func (o *own) share(since int) bool {
	n := o.copies.len()
	return n < muchCopies && o.copies.bytes < muchBytes && since >= max(ownRun, ownRounds*n)
}

// fifo is a queue of messages; the zero value is empty.
type fifo struct {
	items []core.Message
	head  int
	bytes int64 // of names, headers and payloads
}

func (q *fifo) len() int { return len(q.items) - q.head }

// fits reports whether one more message is within the bounds, which it may
// exceed itself.
func (q *fifo) fits(messages int, bytes int64) bool { return q.len() < messages && q.bytes < bytes }

func (q *fifo) push(m core.Message) {
	if q.head > len(q.items)/2 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, m)
	q.bytes += weight(&m)
}

// keepItems is how long a list may be that is kept when it is empty.
const keepItems = 4096

func (q *fifo) pop() core.Message {
	m := q.items[q.head]
	q.items[q.head] = core.Message{}
	q.head++
	q.bytes -= weight(&m)
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > keepItems {
			q.items = nil
		}
	}
	return m
}

// weight is what a message takes in the queue.
func weight(m *core.Message) int64 { return int64(m.Size() + len(m.Name) + perMessage) }
