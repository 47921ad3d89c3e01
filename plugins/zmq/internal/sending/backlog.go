// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// The bounds of what waits for a peer, far above the host's window of 1024
// messages and 8 MiB. One message always fits.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
)

// pending is a message that waits for a peer.
type pending struct {
	message core.Message
	unsent  *outq.Unsent // what a lost peer has not been sent; then message is empty
	ticket  outq.Ticket
	size    int64
	at      time.Time
}

// name is where it goes.
func (p *pending) name() string {
	if p.unsent != nil {
		return p.unsent.Name()
	}
	return p.message.Name
}

// backlog is what waits for a peer, in order. While there is none, each message
// waits for a certain time. All but due is guarded by the owner's lock.
type backlog struct {
	wait time.Duration
	due  func() // called when the first message has waited for long enough

	list    []pending
	first   int
	bytes   int64
	since   time.Time // when the last peer left
	timer   *time.Timer
	running sync.WaitGroup // of the timer's function
}

func (b *backlog) len() int { return len(b.list) - b.first }

// fits reports whether a message of size bytes may wait as well.
func (b *backlog) fits(size int64) bool {
	n := b.len()
	return n == 0 || n < maxWaiting && b.bytes+size <= maxWaitingBytes
}

// push puts a message behind the others.
func (b *backlog) push(m *core.Message, t outq.Ticket) bool {
	size := int64(m.Size())
	if !b.fits(size) {
		return false
	}
	b.list = append(b.list, pending{message: *m, ticket: t, size: size, at: time.Now()})
	b.bytes += size
	return true
}

// before puts what a lost peer has not been sent in front, whatever the bounds:
// it was accepted.
func (b *backlog) before(unsent []outq.Unsent) {
	if len(unsent) == 0 {
		return
	}
	list := make([]pending, 0, len(unsent)+b.len())
	for i := range unsent {
		u := &unsent[i]
		size := int64(u.Size())
		list = append(list, pending{unsent: u, ticket: u.Ticket(), size: size})
		b.bytes += size
	}
	b.list, b.first = append(list, b.list[b.first:]...), 0
}

// peek returns the first message.
func (b *backlog) peek() *pending { return &b.list[b.first] }

// pop forgets the first message.
func (b *backlog) pop() {
	p := &b.list[b.first]
	b.bytes -= p.size
	*p = pending{}
	b.first++
	switch {
	case b.len() == 0:
		b.list, b.first = nil, 0
	case b.first >= maxWaiting && b.first >= len(b.list)/2:
		b.list, b.first = append([]pending(nil), b.list[b.first:]...), 0
	}
}

// takeAll empties the backlog.
func (b *backlog) takeAll() []pending {
	all := b.list[b.first:]
	b.list, b.first, b.bytes = nil, 0, 0
	return all
}

// deadline is when a message has waited for a peer for long enough: the time
// counts from its arrival, or from when the last peer left.
func (b *backlog) deadline(p *pending) time.Time {
	from := p.at
	if from.Before(b.since) {
		from = b.since
	}
	return from.Add(b.wait)
}

// takeDue takes the messages that have waited for long enough.
func (b *backlog) takeDue(now time.Time) []pending {
	n := b.first
	for n < len(b.list) && !b.deadline(&b.list[n]).After(now) {
		n++
	}
	taken := append([]pending(nil), b.list[b.first:n]...)
	for range taken {
		b.pop()
	}
	return taken
}

// arm makes due be called when the first message has waited for long enough.
func (b *backlog) arm() {
	if b.timer != nil || b.len() == 0 {
		return
	}
	b.running.Add(1)
	b.timer = time.AfterFunc(time.Until(b.deadline(b.peek())), func() {
		defer b.running.Done()
		b.due()
	})
}

// disarm takes arm back.
func (b *backlog) disarm() {
	if b.timer != nil && b.timer.Stop() {
		b.running.Done()
	}
	b.timer = nil
}
