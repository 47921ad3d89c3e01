// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// sent is a delivery of a source without acks.
type sent struct {
	r      *record
	number uint64 // of the subscription's deliveries, from 1
}

// consumer is one open subscription. Its fields are under the broker's lock.
type consumer struct {
	peer       *peer
	sub        uint32
	name       string // a queue, or a pattern that ends with *
	profiles   []core.Capabilities
	identities bool

	// Totals: what was delivered, and how far deliveries may go.
	count, bytes       uint64
	maxCount, maxBytes uint64
	out                map[uint64]*record // unsettled, by delivery id
	sent               []sent             // not yet known as handed on
	batch              []wire.Item
	batchSize          int
	caughtUp, ended    bool
	forgotten          map[uint64]*record // deliveries without acks, by id; only with KeepVerdicts
	handedOn           uint64             // of count, as far as the plugin has told
	deaf               bool               // it takes nothing more
	early              []earlyReceipt
}

// most is how much one frame of deliveries holds.
const (
	mostItems = 256
	mostBytes = 128 << 10
)

// matches reports whether the subscription reads a queue.
func (c *consumer) matches(queue string) bool { return c.peer.b.matches(c.name, queue) }

func (b *Broker) matches(subscription, queue string) bool {
	if b.match == nil {
		return Matches(subscription, queue)
	}
	return subscription == queue || b.match(subscription, queue)
}

// want sets how far deliveries may go and how many were handed on.
func (c *consumer) want(handed, count, bytes uint64) {
	c.maxCount, c.maxBytes = count, bytes
	c.sent = slices.DeleteFunc(c.sent, func(s sent) bool { return s.number <= handed })
	c.answerEarly()
}

func (c *consumer) hungry() bool {
	return !c.ended && c.count < c.maxCount && c.bytes < c.maxBytes
}

// profile returns the capabilities of a record's deliveries.
func (c *consumer) profile(r *record) (uint32, core.Capabilities) {
	i := r.msg.Profile
	if int(i) >= len(c.profiles) {
		i = 0
	}
	return i, c.profiles[i]
}

// consumer returns the open subscription of a connection.
func (b *Broker) consumer(p *peer, sub uint32) *consumer {
	for _, c := range b.consumers {
		if c.peer == p && c.sub == sub {
			return c
		}
	}
	return nil
}

// reads returns the queues that a subscription reads, in order of appearance.
func (b *Broker) reads(c *consumer) []*queue {
	if !strings.HasSuffix(c.name, "*") {
		if own := b.queue(c.name); b.match == nil {
			return []*queue{own}
		}
	}
	var qs []*queue
	for _, name := range b.names {
		if c.matches(name) {
			qs = append(qs, b.queues[name])
		}
	}
	return qs
}

func (b *Broker) subscribe(p *peer, f *wire.Frame) *core.Fault {
	if len(f.Profiles) == 0 {
		return fault(core.FaultInvalid, false, "subscribe to %q: no profile", f.Name)
	}
	if b.consumer(p, f.Sub) != nil {
		return fault(core.FaultConflict, false, "subscribe to %q: the number is taken", f.Name)
	}
	b.opened[f.Name] = true
	b.consumers = append(b.consumers, &consumer{
		peer: p, sub: f.Sub, name: f.Name, profiles: f.Profiles, identities: f.Flag,
		out: map[uint64]*record{}, forgotten: map[uint64]*record{},
	})
	b.notify()
	return nil
}

// unsubscribe ends a subscription in order: what the plugin never handed on
// goes back as if it had not been delivered.
func (b *Broker) unsubscribe(p *peer, f *wire.Frame) {
	c := b.consumer(p, f.Sub)
	if c == nil {
		return
	}
	unread := map[uint64]bool{}
	for i := range f.Items {
		unread[f.Items[i].ID] = true
	}
	rs := slices.Collect(maps.Values(c.out))
	for _, s := range c.sent {
		rs = append(rs, s.r)
	}
	for _, r := range rs {
		if unread[r.delivery] && (r.state == Sent || r.state == Outstanding) {
			r.count--
			r.queue.account.Deliveries--
			b.back(r, core.OrderTotal, 0)
		}
	}
	b.detach(c)
}

// detach ends a subscription: what it has unsettled goes as its profiles say.
func (b *Broker) detach(c *consumer) {
	b.consumers = slices.DeleteFunc(b.consumers, func(o *consumer) bool { return o == c })
	c.deaf = true
	c.handed(c.handedOn)
	for _, r := range c.outstanding() {
		switch profile := c.profiles[r.profile]; profile.Unsettled {
		case core.UnsettledLost:
			b.lose(r, "its connection ended")
		case core.UnsettledOnDisconnect:
			b.back(r, profile.Order, 0)
		case core.UnsettledOnResume:
			r.consumer, r.session = nil, c.peer.session
		case core.UnsettledOnTimeout:
			r.consumer = nil // its hold goes on
		}
	}
	c.out = nil
}

// outstanding returns the unsettled records in order of delivery.
func (c *consumer) outstanding() []*record {
	return slices.SortedFunc(maps.Values(c.out), func(a, b *record) int {
		return cmp.Compare(a.delivery, b.delivery)
	})
}

// pump delivers what can be delivered, one message to each subscription in
// turn. The broker's lock is held.
func (b *Broker) pump() {
	if b.closed {
		return
	}
	b.reorder()
	for more := true; more && !b.flooded; {
		more = false
		for _, c := range b.consumers {
			if !c.hungry() {
				continue
			}
			if r := b.next(c); r != nil {
				b.deliver(c, r)
				more = true
			}
		}
	}
	for _, c := range b.consumers {
		c.flush()
		b.finished(c)
	}
}

// next takes the first ready record of a subscription's queues.
func (b *Broker) next(c *consumer) *record {
	for {
		var first *record
		for _, q := range b.reads(c) {
			if q.paused || q.faults.reorder > 0 {
				continue
			}
			if r := q.first(c.peer); r != nil && (first == nil || r.key < first.key) {
				first = r
			}
		}
		if first == nil {
			return nil
		}
		first.queue.drop(first)
		d := first.queue.faults.delay()
		if d == 0 {
			return first
		}
		b.later(first, d)
	}
}

// first returns the first ready record that a connection may read.
func (q *queue) first(p *peer) *record {
	if len(q.ready) == 0 {
		return nil
	}
	if r := q.ready[0]; r.by == nil || r.by == p {
		return r
	}
	var first *record
	for _, r := range q.ready {
		if (r.by == nil || r.by == p) && (first == nil || r.key < first.key) {
			first = r
		}
	}
	return first
}

// deliver hands a record to a subscription.
func (b *Broker) deliver(c *consumer, r *record) {
	i, profile := c.profile(r)
	b.deliveries++
	r.count++
	r.queue.account.Deliveries++
	r.delivery, r.profile, r.session, r.released = b.deliveries, i, "", false
	b.flooded = b.flooded || b.most > 0 && b.deliveries >= b.most
	b.goesRound(r)
	if b.strays(c, r, profile) {
		return
	}
	if profile.Ack == core.AckNone {
		if b.keeps {
			c.forgotten[r.delivery] = r
		}
		b.finish(r, Sent, "")
		c.sent = append(c.sent, sent{r: r, number: c.count + 1})
	} else {
		r.set(Outstanding)
		r.consumer = c
		c.out[r.delivery] = r
		if profile.MaxHold > 0 {
			b.holdFor(r, profile, profile.MaxHold)
		}
	}
	it := wire.Item{
		ID: r.delivery, Name: cmp.Or(r.msg.As, r.msg.Queue), Headers: r.msg.Headers, Payload: r.msg.Payload,
		Scope: r.msg.Scope, Profile: i, Time: r.msg.PublishedAt.UnixNano(), Fault: r.msg.Undecodable,
		Position: binary.BigEndian.AppendUint64(nil, r.msg.ID),
		Carry:    append([]byte("carry "), r.msg.Payload[:min(len(r.msg.Payload), 64)]...),
	}
	if profile.Counts == core.CountNative {
		it.Attempt = r.count
	}
	if c.identities {
		it.Identity = binary.BigEndian.AppendUint64(nil, cmp.Or(r.msg.Twin, r.msg.ID))
	}
	b.double(r)
	c.caughtUp = false
	c.count++
	r.to, r.number = c, c.count
	c.bytes += size(r.msg)
	if n := it.Size(); len(c.batch) > 0 && c.batchSize+n > mostBytes || len(c.batch) == mostItems {
		c.flush()
	}
	c.batch = append(c.batch, it)
	c.batchSize += it.Size()
	b.notify()
}

// size is what a message counts against credit.
func size(m Message) uint64 {
	n := len(m.Payload)
	for _, h := range m.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return uint64(n)
}

func (c *consumer) flush() {
	if len(c.batch) > 0 {
		c.peer.send(&wire.Frame{Kind: wire.Deliver, Sub: c.sub, Items: c.batch})
		c.batch, c.batchSize = nil, 0
	}
}

// finished says that a subscription has read all there is, where a test asked
// for that.
func (b *Broker) finished(c *consumer) {
	if b.patient && c.maxCount == 0 {
		return // it has not asked yet: what comes would not be delivered at once
	}
	if b.patient && len(c.forgotten) > 0 {
		return // what the host has may come back as a copy, for which there may be no credit
	}
	end, caught := true, true
	qs := b.reads(c)
	for _, q := range qs {
		if len(q.ready) > 0 || b.patient && q.pending() > 0 {
			return
		}
		end = end && q.end && q.account.Queued == 0 // none waits for its time
		caught = caught && (q.caught || q.end || b.caught)
	}
	switch {
	case len(qs) == 0 && !b.caught || c.ended:
	case end && len(qs) > 0:
		c.ended = true
		c.peer.send(&wire.Frame{Kind: wire.End, Sub: c.sub})
	case caught && !c.caughtUp:
		c.caughtUp = true
		c.peer.send(&wire.Frame{Kind: wire.CaughtUp, Sub: c.sub})
	}
}

// holdFor ends a record's hold after d.
func (b *Broker) holdFor(r *record, profile core.Capabilities, d time.Duration) {
	if r.hold != nil {
		r.hold.Stop()
	}
	delivery := r.delivery
	r.hold = b.after(d, func() {
		if r.state == Outstanding && r.delivery == delivery {
			b.void([]*record{r}, profile.Unsettled != core.UnsettledLost, "its hold ended")
		}
	})
}

// void takes deliveries away from their subscriptions.
func (b *Broker) void(rs []*record, returns bool, why string) {
	ids := map[*consumer][]wire.Item{}
	var order []*consumer
	for _, r := range rs {
		profile := core.Capabilities{Order: core.OrderTotal}
		if c := r.consumer; c != nil {
			if ids[c] == nil {
				order = append(order, c)
			}
			ids[c] = append(ids[c], wire.Item{ID: r.delivery})
			profile = c.profiles[r.profile]
		}
		if returns {
			b.back(r, profile.Order, 0)
		} else {
			b.lose(r, why)
		}
	}
	for _, c := range order {
		c.peer.send(&wire.Frame{Kind: wire.Voided, Sub: c.sub, Items: ids[c], Flag2: returns})
	}
}
