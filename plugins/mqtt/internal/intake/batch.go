// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"sync"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
)

// The bounds of one batch, whatever room there is: about what a frame to the
// host holds, so that no small frames are left behind.
const (
	maxBatch   = 256
	frameBytes = 120 << 10
	perMessage = 64 // beside a packet's own bytes: what frames add, and names of headers that are properties
)

// batch makes deliveries of items. What it hands out is not written again before
// its memory is released; the list of deliveries is.
type batch struct {
	decoder message.Decoder
	items   []item // taken, until end
	plain   []byte // the intake's
	acks    []bool // of items: they have ProfileAcks
	answers answers

	out    []pluginapi.Delivery
	memory *lease
}

// lease is what the deliveries of one batch lie in.
type lease struct {
	decoded message.Memory
	held    []held
	carries []byte
}

// held is a number of references to memory.
type held struct {
	memory *memory
	n      int
}

var leases = sync.Pool{New: func() any { return new(lease) }}

// Release takes back what a host has.
func (l *lease) Release() {
	for i := range l.held {
		l.held[i].memory.drop(l.held[i].n)
	}
	clear(l.held)
	l.held = l.held[:0]
	l.decoded.Spent()
	poison.Bytes(l.carries)
	l.carries = l.carries[:0]
	leases.Put(l)
}

// hold takes a reference over.
func (l *lease) hold(m *memory) {
	if n := len(l.held); n > 0 && l.held[n-1].memory == m {
		l.held[n-1].n++
		return
	}
	l.held = append(l.held, held{m, 1})
}

// fill takes items out of the receiver's inbox as far as there is room. in.mu is
// held.
func (b *batch) fill(rc *Receiver, room pluginapi.Room) {
	in := rc.in
	var bytes int64
	var at clock
	frame := 0
	b.plain = in.plain
	for rc.box.n > 0 {
		it := rc.box.at(0)
		if it.handle != nil && !in.ready(it.handle) {
			break
		}
		if n := len(b.items); n == min(room.Messages, maxBatch) || bytes >= room.Bytes || frame > 0 && frame+it.size > frameBytes {
			break
		}
		b.items = append(b.items, rc.box.pop())
		it = &b.items[len(b.items)-1]
		in.uncount(it)
		if it.handle != nil && it.handle.fate == fateOver { // it has come again, and stands further back
			b.skip(in)
			continue
		}
		if it.deadline != 0 && at.now().UnixMilli() >= it.deadline {
			b.expire(in, &at)
			continue
		}
		b.acks = append(b.acks, in.hand(it, rc, &b.answers))
		bytes += int64(it.size + perMessage)
		frame += it.size + perMessage
		in.count(it)
	}
}

// ready reports whether a delivery may be handed out: one of QoS 1 that came on
// an older link is handed out when it is known whether it comes again.
func (in *Intake) ready(h *handle) bool {
	return h.fate != fateQueued || h.entry.qos == 2 || in.live != nil && h.entry.seen == in.number
}

// count counts a delivery.
func (in *Intake) count(it *item) {
	in.counters.Messages++
	if it.publish.Dup {
		in.counters.Again++
	}
}

// hand hands an item out, and reports whether it can be settled. Where it can but
// the receiver has no acks, it is settled with that: the server has lowered the
// QoS of the subscription since.
func (in *Intake) hand(it *item, rc *Receiver, to *answers) bool {
	h := it.handle
	switch {
	case h == nil:
		return false
	case h.fate == fateQueued && rc.acks:
		h.fate = fateHanded
		return true
	case h.fate == fateQueued:
		in.settle(h, to)
		in.reuse(h)
	}
	it.handle = nil
	return false
}

// expire settles the last item instead of delivering it: its life was over before
// it was its turn (3.3.2.3.3).
func (b *batch) expire(in *Intake, at *clock) {
	it := &b.items[len(b.items)-1]
	if h := it.handle; h != nil && h.fate == fateQueued {
		in.settle(h, &b.answers)
		in.reuse(h)
	}
	in.counters.Expired++
	in.lines.hit(lineExpired, it.publish.Topic, at.now())
	b.skip(in)
}

// skip takes the last item out: it is not delivered.
func (b *batch) skip(in *Intake) {
	n := len(b.items) - 1
	in.drop(b.items[n])
	b.items[n] = item{}
	b.items = b.items[:n]
}

// end makes deliveries of the items, and reports whether there are any.
func (b *batch) end(rc *Receiver) (pluginapi.Batch, bool) {
	n := len(b.items)
	if n == 0 {
		return pluginapi.Batch{}, false
	}
	if b.memory == nil {
		b.memory, _ = leases.Get().(*lease)
	}
	m := b.memory
	b.memory = nil
	b.decoder.Use(&m.decoded)
	if cap(m.carries) < n*carry.Size {
		m.carries = make([]byte, 0, max(n*carry.Size, 2*cap(m.carries)))
	}
	last := len(b.out)
	b.out = slices.Grow(b.out[:0], n)[:n]
	undecoded := uint64(0)
	for i := range b.items {
		it, d := &b.items[i], &b.out[i]
		*d = pluginapi.Delivery{}
		d.Undecodable = b.decoder.Decode(&it.publish, &d.Message)
		if d.Undecodable != nil {
			undecoded++
		}
		if b.acks[i] {
			d.Handle, d.Profile = it.handle, ProfileAcks
		} else if rc.acks {
			d.Profile = ProfileNoAcks
		}
		d.Carry = b.carry(m, rc, it)
		m.hold(it.memory)
	}
	if last > n {
		clear(b.out[n:last]) // what the list before kept
	}
	clear(b.items)
	b.items, b.acks = b.items[:0], b.acks[:0]
	if undecoded > 0 {
		rc.in.mu.Lock()
		rc.in.counters.Undecoded += undecoded
		rc.in.mu.Unlock()
	}
	return pluginapi.Batch{Deliveries: b.out, Memory: m}, true
}

// carry is what comes back on copies of a delivery.
func (b *batch) carry(m *lease, rc *Receiver, it *item) []byte {
	from := len(m.carries)
	m.carries = carry.Append(m.carries, &carry.Carry{
		Instance: rc.in.c.Instance, Link: it.link, ID: it.publish.ID, QoS: it.publish.QoS, Deadline: it.deadline,
	})
	return m.carries[from:len(m.carries):len(m.carries)]
}
