// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// maxFreeCalls is how many finished calls are kept for the next ones.
const maxFreeCalls = 64

// publishCall is one call of Conn.Publish: the messages of one frame. It is
// used again once every message has its receipt; life tells a done of a former
// use from one of this.
type publishCall struct {
	p        *publisher
	frame    *frame.Publishes
	messages []Outgoing
	owed     []owed
	left     int
	life     uint64
}

// owed is a message's receipt to come.
type owed struct {
	id    uint64
	bytes int64
	done  bool
}

// newCall returns an empty call for a frame; p.mu is held.
func (p *publisher) newCall(f *frame.Publishes) *publishCall {
	c := &publishCall{p: p}
	if n := len(p.free); n > 0 {
		c = p.free[n-1]
		p.free = p.free[:n-1]
	}
	c.frame = f
	return c
}

// add adds a message of the call's frame.
func (c *publishCall) add(m *frame.Outgoing, bytes int64) {
	c.messages = append(c.messages, Outgoing{
		Message: m.Message, Purpose: known(m.Purpose), Carry: m.Carry,
		DeliverAfter: m.DeliverAfter, DedupID: m.DedupID,
		Options: Options{raw: m.Options, typ: c.p.spec.Publish.typ},
	})
	c.owed = append(c.owed, owed{id: m.ID, bytes: bytes})
	c.left++
}

// open enters a call that the transport is given with the function returned;
// p.mu is held.
func (p *publisher) open(c *publishCall) func(int, Receipt) {
	p.calls[c] = struct{}{}
	life := c.life
	return func(i int, r Receipt) { c.receipt(life, i, r) }
}

// known returns a known purpose, else none.
func known(p uint8) Purpose {
	if p > uint8(PurposeReply) {
		return PurposeUnspecified
	}
	return Purpose(p)
}

// receipt takes the receipt of message i, once. It may be called from any
// goroutine at any time.
func (c *publishCall) receipt(life uint64, i int, r Receipt) {
	p := c.p
	p.mu.Lock()
	if life != c.life || i < 0 || i >= len(c.owed) || c.owed[i].done {
		p.double++
		first := p.double == 1
		p.mu.Unlock()
		if first {
			p.log.Warn("transport called done for a message that has its receipt, or that there is not; it is ignored", "index", i)
		}
		return
	}
	out := frame.Receipt{ID: c.owed[i].id, Unrouted: r.Unrouted, Position: r.Position}
	out.Status, out.Fault = receiptStatus(r)
	if len(out.Position) > maxAside {
		out.Position = nil // better no position than no receipt
	}
	c.settle(i, out)
	if c.left == 0 {
		p.recycle(c)
	}
	p.mu.Unlock()
	wake(p.toWriter)
}

// settle answers message i; p.mu is held.
func (c *publishCall) settle(i int, r frame.Receipt) {
	c.owed[i].done = true
	c.left--
	c.p.missing--
	c.p.bytes -= c.owed[i].bytes
	c.p.add(r)
}

// recycle releases a call's frame and keeps the call for the next; p.mu is
// held.
func (p *publisher) recycle(c *publishCall) {
	delete(p.calls, c)
	c.life++
	c.frame.Release()
	c.frame = nil
	clear(c.messages)
	c.messages, c.owed, c.left = c.messages[:0], c.owed[:0], 0
	if len(p.free) < maxFreeCalls {
		p.free = append(p.free, c)
	}
}

// abort ends a call whose Publish panicked. What the transport still does with
// the messages nobody knows, so they are not used again.
func (p *publisher) abort(c *publishCall, life uint64, fault *core.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.life != life {
		return // every message had its receipt before the panic
	}
	p.giveUp(c, frame.ReceiptUnknown, fault)
	delete(p.calls, c)
	wake(p.toWriter)
}

// giveUp answers every message of a call that has no receipt; p.mu is held.
func (p *publisher) giveUp(c *publishCall, status frame.ReceiptStatus, fault *core.Fault) {
	for i := range c.owed {
		if !c.owed[i].done {
			c.settle(i, frame.Receipt{ID: c.owed[i].id, Status: status, Fault: fault})
		}
	}
}

// receiptStatus returns a transport's receipt as it travels.
func receiptStatus(r Receipt) (frame.ReceiptStatus, *core.Fault) {
	switch r.Status {
	case ReceiptConfirmed:
		return frame.ReceiptConfirmed, nil
	case ReceiptRefused:
		if r.Fault == nil {
			r.Fault = newFault(core.FaultInternal, "publish: the transport refused without a reason")
		}
		return frame.ReceiptRefused, brief(r.Fault)
	}
	if r.Fault == nil {
		r.Fault = newFault(core.FaultInternal, "publish: the transport gave no reason")
	}
	return frame.ReceiptUnknown, brief(r.Fault)
}
