// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore/core"
)

// Cumulative lets deliveries of a source with cumulative acks be acked in any
// order: an ack is accepted at once, and the source is told as far as everything
// before is acked, within each scope. A released delivery pins the mark of its
// scope: nothing at or behind it is acked any more, so it comes back as the
// source's Unsettled says. The pin lasts until the scope is void or the
// subscription seeks.
//
// # Caveats
//
// Handles must be comparable, and Receive must return the deliveries of a scope
// in the order of the source.
func Cumulative(sub Subscription) Subscription {
	return &cumulative{sub: sub, inner: powersOf(sub), scopes: make(map[string]*mark), open: make(map[any]*markNode)}
}

// cumulative is a Subscription that acks up to low-water marks.
type cumulative struct {
	sub   Subscription
	inner powers

	mu     sync.Mutex
	scopes map[string]*mark
	open   map[any]*markNode // unsettled, by handle
}

// mark is the list of one scope's deliveries, oldest first, from the first one
// that is not acked. Neighbours that are acked are one node, so the list is
// never longer than twice the window.
type mark struct {
	head, tail *markNode
	pinned     bool // what comes is not entered any more
}

// markNode is one delivery, or the last of several that are acked.
type markNode struct {
	mark       *mark
	scope      string
	handle     any
	acked      bool
	pin        bool
	prev, next *markNode
}

func (c *cumulative) powers() powers {
	p := powers{releaser: c, stopper: c.inner.stopper, finisher: c.inner.finisher, misfit: c.inner.misfit}
	if c.inner.seeker != nil {
		p.seeker = c
	}
	return p
}

// Profiles are the inner ones.
func (c *cumulative) Profiles() []core.Capabilities { return c.sub.Profiles() }

// Receive enters what the inner one delivers, and forgets what is void.
func (c *cumulative) Receive(ctx context.Context, room Room) (Batch, error) {
	b, err := c.sub.Receive(ctx, room)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Voids {
		c.void(&b.Voids[i])
	}
	for i := range b.Deliveries {
		c.enter(&b.Deliveries[i])
	}
	return b, err
}

// enter appends a delivery to its scope; c.mu is held.
func (c *cumulative) enter(d *Delivery) {
	m := c.scopes[d.Scope]
	if m == nil {
		m = &mark{}
		c.scopes[d.Scope] = m
	}
	n := &markNode{mark: m, scope: d.Scope, handle: d.Handle}
	c.open[d.Handle] = n
	if m.pinned {
		return // it can never be acked; its verdict is taken all the same
	}
	m.push(n)
}

// void forgets deliveries; c.mu is held. Those that are gone no longer hold the
// mark back. A single one that comes back pins it: an ack behind it would take
// it away. A whole scope starts afresh.
func (c *cumulative) void(v *Void) {
	match, fault := matcher("cumulative subscription", v)
	if fault != nil {
		return // the SDK finds the same and ends the subscription
	}
	single := !v.All && len(v.Handles) > 0
	for handle, n := range c.open {
		if !match(handle, n.scope) {
			continue
		}
		delete(c.open, handle)
		switch {
		case !single:
		case v.Returns:
			c.pin(n)
		default:
			n.mark.remove(n)
		}
	}
	if single {
		return
	}
	for scope := range c.scopes {
		if v.All || scope == v.Scope {
			delete(c.scopes, scope)
		}
	}
}

// pin keeps the mark of n's scope before n; c.mu is held.
func (c *cumulative) pin(n *markNode) {
	m := n.mark
	if n.prev == nil && n.next == nil && m.head != n {
		return // it is behind another pin
	}
	n.pin = true
	m.pinned = true
	for behind := n.next; behind != nil; {
		next := behind.next
		m.remove(behind)
		behind = next
	}
}

// Settle enters acks and passes on how far everything is acked.
func (c *cumulative) Settle(ctx context.Context, vs []Verdict) []Result {
	out := make([]Result, len(vs))
	pass, answers := c.enterAcks(vs, out)
	if len(pass) == 0 {
		return out
	}
	rs := c.sub.Settle(ctx, pass)
	for i, at := range answers {
		if at >= 0 {
			out[i] = Result{Status: ResultFailed}
			if at < len(rs) {
				out[i] = rs[at]
			}
		}
	}
	return out
}

// enterAcks enters acks, with their results in out. It returns what the inner
// subscription is told, and for each verdict which of these its result follows,
// -1 where out has it.
func (c *cumulative) enterAcks(vs []Verdict, out []Result) (pass []Verdict, answers []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answers = make([]int, len(vs))
	marks := make(map[*mark]int) // index in pass of a scope's ack
	for i, v := range vs {
		answers[i] = -1
		n := c.open[v.Handle]
		switch {
		case n == nil:
			out[i] = Result{Status: ResultStale}
			continue
		case v.Kind != core.VerdictAck:
			answers[i] = len(pass)
			pass = append(pass, v)
			continue
		}
		delete(c.open, v.Handle)
		out[i] = Result{Status: ResultDone}
		last, moved := n.mark.ack(n)
		if !moved {
			continue
		}
		v.Handle = last
		if at, ok := marks[n.mark]; ok {
			pass[at] = v
		} else {
			marks[n.mark] = len(pass)
			pass = append(pass, v)
		}
		answers[i] = marks[n.mark]
	}
	return pass, answers
}

// Release pins the marks of the released deliveries' scopes.
func (c *cumulative) Release(handles []any) {
	c.pinAll(handles)
	if c.inner.releaser != nil {
		c.inner.releaser.Release(handles)
	}
}

// pinAll pins before each of the deliveries.
func (c *cumulative) pinAll(handles []any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range handles {
		if n := c.open[h]; n != nil {
			delete(c.open, h)
			c.pin(n)
		}
	}
}

// Seek moves the inner one; the marks start afresh then.
func (c *cumulative) Seek(ctx context.Context, to Position) error {
	if err := c.inner.seeker.Seek(ctx, to); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.scopes)
	clear(c.open)
	return nil
}

// Close closes the inner one.
func (c *cumulative) Close(ctx context.Context) error { return c.sub.Close(ctx) }

// push appends a node.
func (m *mark) push(n *markNode) {
	n.prev = m.tail
	if m.tail != nil {
		m.tail.next = n
	} else {
		m.head = n
	}
	m.tail = n
}

// remove takes a node out; one that is not in is left alone.
func (m *mark) remove(n *markNode) {
	if n.prev == nil && m.head != n {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		m.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		m.tail = n.prev
	}
	n.prev, n.next = nil, nil
}

// ack enters an ack. Where the mark moves it returns the delivery that is the
// last one before the first that is not acked.
func (m *mark) ack(n *markNode) (last any, moved bool) {
	if n.prev == nil && m.head != n {
		return nil, false // behind a pin
	}
	n.acked = true
	if n.prev != nil && n.prev.acked {
		m.remove(n.prev)
	}
	if n.next != nil && n.next.acked {
		next := n.next
		m.remove(n)
		n = next
	}
	if m.head != n {
		return nil, false
	}
	m.remove(n)
	return n.handle, true
}
