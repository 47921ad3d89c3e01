// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"github.com/longshore-go/longshore/internal/frame"
)

// Sending is one publish of the application. It may be sent again once its
// receipt was told, or [Outbox.TakeBack] has taken it back.
type Sending struct {
	publish
	receiver Receiver
}

// Receiver is told of a receipt once, by any goroutine, without a lock. It must
// not block.
type Receiver interface {
	Receive(r frame.Receipt)
}

func (s *Sending) receive(_ uint64, r frame.Receipt) { s.receiver.Receive(r) }

// Send hands o over for the application and never blocks: what the publish
// window has no room for waits. The receiver gets one receipt; o, whose ID is
// not used, must not change before. It reports false where the receipt, a
// refusal, was told in the call.
func (b *Outbox) Send(s *Sending, o *frame.Outgoing, to Receiver) bool {
	s.publish = publish{out: *o, to: s}
	s.receiver = to
	return b.hand(&s.publish)
}

// TakeBack gives s up. It reports whether s was not sent; there is no receipt
// then. One that is sent is left alone.
func (b *Outbox) TakeBack(s *Sending) bool { return b.take(&s.publish) }

// Sendings returns the number of the application's publishes without a receipt
// that nobody has given up.
func (b *Outbox) Sendings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	count := func(p *publish) {
		if _, ok := p.to.(*Sending); ok && !p.left {
			n++
		}
	}
	for p := b.apps.first; p != nil; p = p.next {
		count(p)
	}
	if b.now != nil {
		for p := b.now.ready.first; p != nil; p = p.next {
			count(p)
		}
		for _, p := range b.now.sent {
			count(p)
		}
	}
	return n
}

// Await waits until the stream reads s no more, which a plugin in another
// process has a copy of then. A plugin in this process may read it until the
// receipt.
func (b *Outbox) Await(s *Sending) {
	b.mu.Lock()
	p := &s.publish
	if p.stage != stageSending && p.stage != stageEarly {
		b.mu.Unlock()
		return
	}
	parted := make(chan struct{})
	p.parted = parted
	b.mu.Unlock()
	<-parted
}

// Down reports whether a refusal says that the endpoint is down, or has ended.
func (b *Outbox) Down(r frame.Receipt) bool {
	return r.Fault != nil && (r.Fault == b.down || r.Fault == b.over)
}

// Foreign returns an error of a plugin with texts on one line that are not too
// long to be shown.
func Foreign(err error) error { return foreignError(err) }
