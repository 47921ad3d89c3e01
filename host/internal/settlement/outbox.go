// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

// ErrDown says that an endpoint has no running plugin; nothing was sent.
var ErrDown = errors.New("endpoint is down")

// The publish window of an endpoint: missing receipts.
const (
	windowMessages = 1024
	windowBytes    = 8 << 20
)

// Outbox is the publish side of one endpoint over all generations of its
// plugin. Its methods may be called from any goroutine.
//
// What is handed over waits in one of two queues until the window has room:
// copies and dead letters may use all of it, the application three quarters.
// The queues need no bound of their own. An application's publish has a
// goroutine that waits for it, or a delivery that holds its credit; so has a
// copy, or it counts among the waiting ones.
type Outbox struct {
	o       OutboxOptions
	born    time.Time
	running sync.WaitGroup
	down    *core.Fault // of what is refused while no generation is attached
	over    *core.Fault // of what is refused after Close

	mu      sync.Mutex
	now     *publishing // the attached generation, nil = down
	closed  bool
	copies  queue
	apps    queue
	used    room // sent, or about to be, without a receipt
	counts  Published
	missing int // publishes that are not answered
	idle    chan struct{}
}

// room is a number of messages and their bytes.
type room struct {
	messages int
	bytes    int64
}

// receiver gets receipts. receive is called once a publish, by any goroutine,
// without a lock; it must not block.
type receiver interface {
	receive(token uint64, r frame.Receipt)
}

// publish is one message on its way.
type publish struct {
	out   frame.Outgoing
	copy  bool // a copy or dead letter: may use the whole window and waits for the next generation
	fits  bool // out was checked
	to    receiver
	token uint64

	size   int64
	handed time.Duration // after the outbox was made; of those that Answered is told of
	stage  stage
	left   bool          // it was given up, and could not be taken back any more
	parted chan struct{} // closed when the writer has let go of it; nil = nobody waits
	list   *queue
	next   *publish
	prev   *publish
}

// stage is where a publish stands.
type stage uint8

const (
	stageNew     stage = iota // not handed over yet
	stageQueued               // waits for room
	stageReady                // has room, waits for the writer
	stageSending              // in the writer's hands, which still reads it
	stageEarly                // likewise, and its receipt is here
	stageSent                 // on the stream
	stageDone                 // answered, or taken back
)

// NewOutbox returns an outbox without a generation.
func NewOutbox(o OutboxOptions) *Outbox {
	if o.Messages <= 0 {
		o.Messages = windowMessages
	}
	if o.Bytes <= 0 {
		o.Bytes = windowBytes
	}
	return &Outbox{
		o:    o,
		born: time.Now(),
		down: &core.Fault{
			Code: core.FaultUnavailable, Transient: true,
			Message: fmt.Sprintf("endpoint %q is down", o.Endpoint),
		},
		over: &core.Fault{Code: core.FaultClosed, Message: fmt.Sprintf("endpoint %q has ended", o.Endpoint)},
	}
}

// hand queues p and never blocks. Its receiver gets exactly one receipt, unless
// p is taken back. An application's publish is refused when no generation is
// attached, or a stop has let its stream end. It reports false where the receipt
// was given in the call.
func (b *Outbox) hand(p *publish) bool {
	p.size = int64(frame.Weight(&p.out.Message))
	b.begun(p)
	if f := p.check(); f != nil {
		b.mu.Lock()
		b.counts.Refused++
		b.mu.Unlock()
		b.tell(p, frame.Receipt{Status: frame.ReceiptRefused, Fault: f})
		return false
	}
	b.mu.Lock()
	if p.stage == stageDone { // taken back before it came
		b.mu.Unlock()
		return true
	}
	if over := b.closed || b.now != nil && b.now.half && !p.copy; over || (b.now == nil && !p.copy) {
		p.stage = stageDone
		b.counts.Refused++
		b.mu.Unlock()
		b.tell(p, b.refused(over))
		return false
	}
	b.missing++
	p.stage = stageQueued
	if p.copy {
		b.copies.push(p)
	} else {
		b.apps.push(p)
	}
	b.admit()
	b.mu.Unlock()
	return true
}

// check says why p cannot travel, nil when it can.
func (p *publish) check() *core.Fault {
	if p.fits {
		return nil
	}
	f := p.out.Check()
	p.fits = f == nil
	return f
}

// unready says why an application's publish would be refused now, nil = it
// would not.
func (b *Outbox) unready() *core.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return b.over
	case b.now == nil:
		return b.down
	default:
		return nil
	}
}

// take gives p up. It reports whether p was not sent; its receiver gets no
// receipt then. A publish that is sent is left alone.
func (b *Outbox) take(p *publish) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch p.stage {
	case stageNew:
		p.stage = stageDone
		return true
	case stageQueued:
		p.list.remove(p)
	case stageReady:
		p.list.remove(p)
		b.leave(p)
		b.admit()
	default:
		p.left = true
		return false
	}
	b.answered(p)
	return true
}

// admit moves what has room to the writer. b.mu is held.
func (b *Outbox) admit() {
	if b.now == nil {
		return
	}
	for p := b.copies.first; p != nil && b.used.messages < b.o.Messages && b.used.bytes < b.o.Bytes; p = b.copies.first {
		b.copies.remove(p)
		b.enter(p)
	}
	messages, bytes := b.o.Messages-b.o.Messages/4, b.o.Bytes-b.o.Bytes/4
	for p := b.apps.first; p != nil && b.used.messages < messages && b.used.bytes < bytes; p = b.apps.first {
		b.apps.remove(p)
		b.enter(p)
	}
}

// enter takes p into the window. b.mu is held.
func (b *Outbox) enter(p *publish) {
	b.used.messages++
	b.used.bytes += p.size
	p.stage = stageReady
	b.now.ready.push(p)
	signal(b.now.wake)
}

// leave takes p out of the window. b.mu is held.
func (b *Outbox) leave(p *publish) {
	b.used.messages--
	b.used.bytes -= p.size
}

// answered ends p, whose receipt the caller delivers once b.mu is released.
func (b *Outbox) answered(p *publish) {
	p.stage = stageDone
	b.missing--
	if b.missing == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// refused is the receipt of what could not be sent. over says that no
// generation comes any more.
func (b *Outbox) refused(over bool) frame.Receipt {
	r := frame.Receipt{Status: frame.ReceiptRefused, Fault: b.down}
	if over {
		r.Fault = b.over
	}
	return r
}

// Attach takes over a generation's publish stream; cancel ends its context.
func (b *Outbox) Attach(s link.PublishStream, generation uint64, cancel context.CancelFunc) {
	g := &publishing{
		b: b, stream: s, number: generation, cancel: cancel,
		wake:  make(chan struct{}, 1),
		ended: make(chan struct{}),
		sent:  make(map[uint64]*publish),
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		cancel()
		return
	}
	former := b.now
	b.mu.Unlock()
	if former != nil {
		b.lose(former, ErrDown)
	}
	b.mu.Lock()
	b.now = g
	b.running.Add(2)
	go g.write()
	go g.read()
	b.admit()
	b.mu.Unlock()
}

// Detach lets the attached generation go: receipts that are missing are
// unknown, and what was not sent is refused, except for copies and dead
// letters, which wait for the next generation.
func (b *Outbox) Detach(cause error) {
	cause = foreignError(cause)
	b.mu.Lock()
	g := b.now
	b.mu.Unlock()
	if g != nil {
		b.lose(g, cause)
	}
}

// Drain waits until every receipt is in, half-closes the stream and waits for
// its end. It returns the number of missing receipts when ctx ended first.
func (b *Outbox) Drain(ctx context.Context) int {
	b.mu.Lock()
	if b.missing > 0 {
		if b.idle == nil {
			b.idle = make(chan struct{})
		}
		idle := b.idle
		b.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return b.Missing()
		}
		b.mu.Lock()
	}
	g := b.now
	if g != nil {
		g.half = true
		signal(g.wake)
	}
	b.mu.Unlock()
	if g != nil {
		t := time.NewTimer(endLimit)
		defer t.Stop()
		select {
		case <-g.ended:
		case <-ctx.Done():
		case <-t.C: // a plugin that does not end its stream is not waited for
		}
	}
	return b.Missing()
}

// Close refuses what is not sent, for good, answers missing receipts as
// unknown, ends the stream and waits for the outbox's goroutines.
func (b *Outbox) Close() {
	b.mu.Lock()
	b.closed = true
	g := b.now
	b.mu.Unlock()
	if g != nil {
		b.lose(g, ErrDown)
	}
	b.mu.Lock()
	var left []*publish
	for p := b.copies.first; p != nil; p = b.copies.first {
		b.copies.remove(p)
		b.answered(p)
		b.counts.Refused++
		left = append(left, p)
	}
	b.mu.Unlock()
	for _, p := range left {
		b.tell(p, b.refused(true))
	}
	b.running.Wait()
}

// Missing returns the number of publishes without a receipt, queued ones
// included.
func (b *Outbox) Missing() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing
}

// Counts returns what the publishes came to so far.
func (b *Outbox) Counts() Published {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counts
	c.Missing = uint64(max(b.missing, 0))
	return c
}

// Attached reports whether a generation is attached.
func (b *Outbox) Attached() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now != nil
}

// signal wakes the one who waits on c, which has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
