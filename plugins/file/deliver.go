// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// batcher makes deliveries of records. What a batch hands out is not written
// again before its memory is released; the list of deliveries itself is used
// again at the next call.
type batcher struct {
	decoder envelope.Decoder
	out     []pluginapi.Delivery
	most    int // messages that fit into one frame, as the last ones did; 0 = not known
}

// frameBytes is about what a frame to the host holds: batches of that size leave
// no small frames behind.
const frameBytes = 120 << 10

// perMessage is about what a delivery takes in a frame beside its own bytes.
const perMessage = 48

// memory is what the deliveries of one batch lie in.
type memory struct {
	decoded   envelope.Memory
	positions []byte
	loan      reader.Loan // of what is not decoded
}

// memories are those not in use.
var memories = sync.Pool{New: func() any { return new(memory) }}

// Release takes back what a host has.
func (m *memory) Release() {
	m.loan.Spent()
	m.decoded.Spent()
	poison.Bytes(m.positions)
	memories.Put(m)
}

// read returns what a cursor has just read as deliveries.
func (b *batcher) read(c *reader.Cursor, records []reader.Record) ([]pluginapi.Delivery, pluginapi.Memory) {
	if len(records) == 0 {
		return b.out[:0], nil
	}
	ds, m, spent := b.deliveries(records)
	if spent {
		c.Spent()
	} else {
		c.Lend(&m.loan)
	}
	return ds, m
}

// deliveries returns the records as deliveries, without Handle and Attempt, the
// memory they lie in, and whether none of them shares its payload with its
// record.
func (b *batcher) deliveries(records []reader.Record) (ds []pluginapi.Delivery, m *memory, spent bool) {
	size := 0
	for i := range records {
		size += len(records[i].Payload)
	}
	m, _ = memories.Get().(*memory)
	b.decoder.Use(&m.decoded)
	b.decoder.Expect(len(records), size)
	positions := slices.Grow(m.positions[:0], len(records)*positionLen)
	if last := len(b.out); last > len(records) {
		clear(b.out[len(records):]) // what stands before is written over
	}
	b.out = slices.Grow(b.out[:0], len(records))[:len(records)]
	frame := 0
	spent = true
	for i := range records {
		r, d := &records[i], &b.out[i]
		from := len(positions)
		positions = appendPosition(positions, r)
		d.Handle, d.Attempt = nil, 0
		d.Position, d.PublishedAt = positions[from:len(positions):len(positions)], time.UnixMilli(r.Time)
		d.Undecodable = b.message(r, &d.Message)
		frame += d.Message.Size() + len(d.Message.Name) + positionLen + perMessage
		spent = spent && !same(d.Message.Payload, r.Payload)
	}
	if len(records) > 0 {
		b.most = max(1, frameBytes*len(records)/frame)
	}
	m.positions = positions
	return b.out, m, spent
}

// room is how many messages the next batch should have at most.
func (b *batcher) room(messages int) int {
	messages = min(messages, maxBatch)
	if b.most > 0 {
		messages = min(messages, b.most)
	}
	return messages
}

// same reports whether two payloads are the same memory.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// message takes a record apart. One that is over a limit is a message without
// payload, and why.
func (b *batcher) message(r *reader.Record, m *core.Message) *core.Fault {
	m.Name = r.Key
	var err error
	m.Headers, m.Payload, err = b.decoder.Numbered(r.Payload, r.Sequence)
	switch {
	case err != nil:
		b.withoutPayload(r, m)
		return tooLarge(r, "%v", err)
	case len(r.Payload) <= MaxPublish:
		return nil // taken apart it has no more bytes than its record and its number
	}
	if n := m.Size(); n > MaxMessage {
		b.withoutPayload(r, m)
		return tooLarge(r, "payload and headers of %d bytes, the limit is %d", n, MaxMessage)
	}
	return nil
}

// withoutPayload leaves all that can be delivered of a record that is over a
// limit.
func (b *batcher) withoutPayload(r *reader.Record, m *core.Message) {
	m.Headers, _, _ = b.decoder.Numbered(nil, r.Sequence) // nothing is within the limits
	m.Payload = nil
}

// tooLarge is why a record cannot be delivered whole.
func tooLarge(r *reader.Record, format string, args ...any) *core.Fault {
	return &core.Fault{
		Code:    core.FaultTooLarge,
		Message: fmt.Sprintf("record %d of key %s: ", r.Sequence, r.Key) + fmt.Sprintf(format, args...),
	}
}
