// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"sync"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The bounds of one batch, whatever room there is: about what a frame to the host
// holds, so that no small frames are left behind.
const (
	maxBatch   = 256
	frameBytes = 120 << 10
	perMessage = 96 // beside what the producer has given: id, carry, what frames add
	perHeader  = 8
)

// sizeOf is about what a message takes.
func sizeOf(msg *wire.Message) int {
	n := len(msg.Payload) + perMessage + 2*(len(msg.Key)+len(msg.OrderingKey)) // in headers and carry
	for i := range msg.Properties {
		n += len(msg.Properties[i].Name) + len(msg.Properties[i].Value) + perHeader
	}
	return n
}

// builder makes deliveries of messages.
type builder struct {
	decoder message.Decoder
	room    pluginapi.Room
	items   []item
	bytes   int
	out     []pluginapi.Delivery
}

type item struct {
	entry *entry
	msg   *wire.Message // of a batch that is not released yet, or the entry's
}

// lease is what the deliveries of one batch lie in.
type lease struct{ decoded message.Memory }

var leases = sync.Pool{New: func() any { return new(lease) }}

// Release takes back what a host has.
func (l *lease) Release() {
	l.decoded.Spent()
	leases.Put(l)
}

// begin gives up the list before: nobody has it any more, and nothing may follow for long.
func (b *builder) begin(room pluginapi.Room) {
	b.room, b.bytes = room, 0
	clear(b.out)
	b.out = b.out[:0]
	b.decoder.Use(nil)
}

// full reports whether there is no room for a message. Bytes of the room are exceeded
// by one at most.
func (b *builder) full(size int) bool {
	n := len(b.items)
	return n >= min(b.room.Messages, maxBatch) || int64(b.bytes) >= b.room.Bytes || n > 0 && b.bytes+size > frameBytes
}

func (b *builder) add(e *entry, msg *wire.Message) {
	b.items = append(b.items, item{e, msg})
	b.bytes += e.size
}

// end makes deliveries of what was added.
func (b *builder) end(to *pluginapi.Batch) {
	n := len(b.items)
	if n == 0 {
		return
	}
	m, _ := leases.Get().(*lease)
	b.decoder.Use(&m.decoded)
	b.out = slices.Grow(b.out, n)[:n]
	for i := range b.items {
		it, d := &b.items[i], &b.out[i]
		l := it.entry.lane
		x := b.decoder.Decode(l.partition.Source, it.msg)
		*d = pluginapi.Delivery{
			Handle: it.entry, Message: x.Message, Scope: l.partition.Scope,
			Identity: x.Position, Position: x.Position, Carry: x.Carry, PublishedAt: x.PublishedAt,
		}
		if l.in.counts {
			d.Attempt = max(it.msg.Redelivered+1, 1)
		}
	}
	clear(b.items)
	b.items = b.items[:0]
	to.Deliveries, to.Memory = b.out, m
}
