// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/accepted"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

// The bounds of what may be without a receipt. They lie far above the host's
// own window (1024 messages, 8 MiB), so they only meet a host that has none:
// its messages are refused as FaultExhausted.
const (
	maxMissing      = 1 << 16
	maxMissingBytes = 256 << 20
)

// publisher is the endpoint's publish stream: the reader takes frames and never
// waits, the hander gives them to the transport in order, the writer sends
// receipts as they come.
type publisher struct {
	server *server
	log    *slog.Logger
	spec   *Spec
	conn   Conn
	stream link.ServerPublishStream

	mu       sync.Mutex
	queue    []*publishCall            // not handed to the transport yet
	handing  bool                      // the hander is in the transport's Publish
	calls    map[*publishCall]struct{} // that the transport has
	free     []*publishCall
	missing  int // messages without a receipt, queued ones included
	bytes    int64
	receipts []frame.Receipt // to be sent
	writing  bool            // the writer has receipts in work
	eof      bool            // the host has half-closed
	closed   bool            // the endpoint is closing: nothing more is taken
	dead     bool            // the stream is gone: receipts go nowhere
	double   int             // calls of done beyond the first for a message

	toHander chan struct{}
	toWriter chan struct{}
	failed   chan error    // capacity 1: receipts cannot be sent
	changed  chan struct{} // capacity 1: something that await waits for may be so
}

// Publish serves the endpoint's publish stream.
func (s *server) Publish(stream link.ServerPublishStream) error {
	d, conn, err := s.connected("publish")
	if err != nil {
		return err
	}
	p := &publisher{
		server: s, log: s.log, spec: &d.spec, conn: conn, stream: stream,
		calls:    make(map[*publishCall]struct{}),
		toHander: make(chan struct{}, 1),
		toWriter: make(chan struct{}, 1),
		failed:   make(chan error, 1),
		changed:  make(chan struct{}, 1),
	}
	s.mu.Lock()
	if s.closed || s.publish != nil {
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return closedFault("publish")
		}
		return misuse("publish", "the endpoint's publish stream is open already")
	}
	s.publish = p
	s.mu.Unlock()
	err = p.run()
	s.mu.Lock()
	s.publish = nil
	s.mu.Unlock()
	return err
}

// run serves the stream until every receipt is sent after the host's
// half-close, or the host is gone.
func (p *publisher) run() error {
	written, handed := make(chan struct{}), make(chan struct{})
	go func() { defer close(written); p.write() }()
	go func() { defer close(handed); p.hand() }()
	err := p.until(p.read)
	orderly := errors.Is(err, io.EOF)
	p.mu.Lock()
	p.eof = true
	p.dead = !orderly
	p.mu.Unlock()
	wake(p.toHander)
	wake(p.toWriter)
	<-written
	p.mu.Lock()
	p.dead = true
	double := p.double
	p.mu.Unlock()
	// What was accepted is handed over even when the host is gone.
	limit := time.NewTimer(p.server.options.AuthorLimit)
	defer limit.Stop()
	select {
	case <-handed:
	case <-limit.C:
		p.log.Error("transport does not return from Publish; it is left behind")
	}
	if double > 0 {
		p.log.Warn("transport called done more than once for a message", "calls", double)
	}
	if orderly {
		return p.stream.Context().Err()
	}
	return err
}

// until runs read on a goroutine of its own, which ends with the stream, and
// returns its error or why receipts cannot be sent.
func (p *publisher) until(read func() error) error {
	done := make(chan error, 1)
	go func() { done <- read() }()
	select {
	case err := <-done:
		return err
	case err := <-p.failed:
		return err
	}
}

// read takes frames until the host half-closes (io.EOF) or is lost.
func (p *publisher) read() error {
	for {
		f, err := p.stream.Recv()
		if err != nil {
			return err
		}
		if len(f.Items) > frame.MaxItems {
			n := len(f.Items)
			f.Release()
			return newFault(core.FaultInvalid, "publish: a frame has %d messages: the limit is %d", n, frame.MaxItems)
		}
		p.accept(f)
	}
}

// accept checks the messages of a frame, refuses those that cannot go, and
// queues the rest as one call.
func (p *publisher) accept(f *frame.Publishes) {
	check := p.newCheck()
	p.mu.Lock()
	call := p.newCall(f)
	for i := range f.Items {
		m := &f.Items[i]
		size := int64(frame.Weight(&m.Message))
		if fault := p.refuse(check, m, size); fault != nil {
			p.add(frame.Receipt{ID: m.ID, Status: frame.ReceiptRefused, Fault: fault})
			continue
		}
		p.missing++
		p.bytes += size
		call.add(m, size)
	}
	if call.left > 0 {
		p.queue = append(p.queue, call)
	} else {
		p.recycle(call)
	}
	p.mu.Unlock()
	wake(p.toHander)
	wake(p.toWriter)
}

// refuse says why a message is not handed over, nil when it is; p.mu is held.
func (p *publisher) refuse(check publishCheck, m *frame.Outgoing, size int64) *core.Fault {
	switch fault := check.refuse(m, size); {
	case p.closed:
		return closedFault("publish")
	case fault != nil:
		return fault
	case p.missing >= maxMissing || p.bytes+size > maxMissingBytes && p.missing > 0:
		fault = newFault(core.FaultExhausted, "publish: %d messages have no receipt yet", p.missing)
		fault.Transient = true
		return fault
	}
	return nil
}

// publishCheck refuses what the transport shall not see.
type publishCheck struct {
	spec    *Spec
	good    *accepted.Texts // options of messages
	targets map[string]core.Publishing
}

// newCheck returns a check by what was inspected last.
func (p *publisher) newCheck() publishCheck {
	c := publishCheck{spec: p.spec, good: &p.server.goodOptions}
	p.server.mu.Lock()
	if in := p.server.inspected; in != nil {
		c.targets = in.targets
	}
	p.server.mu.Unlock()
	return c
}

// refuse says why a message cannot be published, nil when it can.
func (c *publishCheck) refuse(m *frame.Outgoing, size int64) *core.Fault {
	top, ok := c.targets[m.Message.Name]
	if !ok {
		top = c.spec.Publishing
	}
	limit := int64(frame.MaxPayload)
	if top.MaxBytes > 0 {
		limit = min(limit, top.MaxBytes)
	}
	switch {
	case size > limit:
		return newFault(core.FaultTooLarge, "publish to %q: %d bytes of payload and headers, the limit is %d",
			m.Message.Name, size, limit)
	case top.MaxHeaders > 0 && len(m.Message.Headers) > top.MaxHeaders:
		return newFault(core.FaultTooLarge, "publish to %q: %d headers, the limit is %d",
			m.Message.Name, len(m.Message.Headers), top.MaxHeaders)
	case m.DeliverAfter < 0, m.DeliverAfter > 0 && m.DeliverAfter >= top.MaxDelay:
		return newFault(core.FaultUnsupported, "publish to %q after %v: the destination's limit is %v",
			m.Message.Name, m.DeliverAfter, top.MaxDelay)
	case len(m.Options) == 0, c.good.Has(m.Options):
		return nil
	}
	if _, wrong := c.spec.Publish.options(m.Options); len(wrong) > 0 {
		return &core.Fault{
			Code: core.FaultInvalid, Message: "options of a message to " + m.Message.Name, Diagnostics: wrong,
		}
	}
	c.good.Add(m.Options)
	return nil
}

// hand gives the frames to the transport, in order, until the stream has ended
// and nothing is left.
func (p *publisher) hand() {
	for {
		p.mu.Lock()
		p.handing = false
		if len(p.queue) == 0 {
			end := p.eof
			p.mu.Unlock()
			wake(p.changed)
			if end {
				return
			}
			<-p.toHander
			continue
		}
		call := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.handing = true
		done, life, messages := p.open(call), call.life, call.messages
		p.mu.Unlock()
		fault := contain(p.log, "Publish", func() { p.conn.Publish(p.server.life, messages, done) })
		if fault != nil {
			p.abort(call, life, fault)
		}
	}
}

// write sends receipts until the stream has ended and none is owed, or it is
// gone.
func (p *publisher) write() {
	var out []frame.Receipt
	gone := p.stream.Context().Done()
	for {
		p.mu.Lock()
		out, p.receipts = p.receipts, out[:0]
		p.writing = len(out) > 0
		end := p.dead || len(out) == 0 && p.eof && p.missing == 0
		p.mu.Unlock()
		if end {
			return
		}
		if len(out) == 0 {
			wake(p.changed)
			select {
			case <-p.toWriter:
			case <-gone:
				return
			}
			continue
		}
		for rest := out; len(rest) > 0; {
			n := min(len(rest), frame.MaxItems)
			if err := p.stream.Send(rest[:n]); err != nil {
				p.failed <- err // a stream without receipts is of no use
				return
			}
			rest = rest[n:]
		}
		clear(out)
	}
}

// await waits until ready, which is called with mu held, or until given up.
func (p *publisher) await(ready func() bool, gone <-chan struct{}) {
	for {
		p.mu.Lock()
		ok := ready()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.changed:
		case <-gone:
			return
		}
	}
}

// handedOver reports whether the transport has all that was accepted.
func (p *publisher) handedOver() bool { return len(p.queue) == 0 && !p.handing }

// answered reports whether every receipt is sent.
func (p *publisher) answered() bool {
	return p.dead || len(p.receipts) == 0 && !p.writing && p.missing == 0
}

// refuseMore makes everything that comes from now on refused.
func (p *publisher) refuseMore() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}

// settleAll answers whatever has no receipt once the transport is closed:
// REFUSED what it never got, UNKNOWN the rest.
func (p *publisher) settleAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range p.queue {
		p.giveUp(call, frame.ReceiptRefused, closedFault("publish"))
		p.recycle(call)
	}
	p.queue = nil
	for call := range p.calls {
		// The transport may still look at the messages: nothing of the call is
		// used again.
		p.giveUp(call, frame.ReceiptUnknown, newFault(core.FaultClosed, "publish: the transport was closed and gave no receipt"))
		delete(p.calls, call)
	}
	wake(p.toWriter)
}

// add queues a receipt for the writer; p.mu is held.
func (p *publisher) add(r frame.Receipt) {
	if !p.dead {
		p.receipts = append(p.receipts, r)
	}
}
