// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// batcher makes deliveries of records. What a batch hands out is never written
// again; the list of deliveries itself is used again at the next call.
type batcher struct {
	decoder envelope.Decoder
	out     []pluginapi.Delivery
}

// deliveries returns the records as deliveries, without Handle and Attempt.
func (b *batcher) deliveries(records []reader.Record) []pluginapi.Delivery {
	size := 0
	for i := range records {
		size += len(records[i].Payload)
	}
	b.decoder.Expect(len(records), size)
	positions := make([]byte, 0, len(records)*positionLen)
	clear(b.out)
	b.out = b.out[:0]
	for i := range records {
		r := &records[i]
		from := len(positions)
		positions = appendPosition(positions, r)
		d := pluginapi.Delivery{Position: positions[from:len(positions):len(positions)], PublishedAt: time.UnixMilli(r.Time)}
		d.Message, d.Undecodable = b.message(r)
		b.out = append(b.out, d)
	}
	return b.out
}

// message takes a record apart. One that is over a limit is a message without
// payload, and why.
func (b *batcher) message(r *reader.Record) (core.Message, *core.Fault) {
	headers, payload, err := b.decoder.Numbered(r.Payload, r.Sequence)
	m := core.Message{Name: r.Key, Headers: headers, Payload: payload}
	switch {
	case err != nil:
		return b.withoutPayload(r), tooLarge(r, "%v", err)
	case len(r.Payload) <= MaxPublish:
		return m, nil // taken apart it has no more bytes than its record and its number
	}
	if n := messageBytes(&m); n > MaxMessage {
		return b.withoutPayload(r), tooLarge(r, "payload and headers of %d bytes, the limit is %d", n, MaxMessage)
	}
	return m, nil
}

// withoutPayload is all that can be delivered of a record that is over a limit.
func (b *batcher) withoutPayload(r *reader.Record) core.Message {
	headers, _, _ := b.decoder.Numbered(nil, r.Sequence) // nothing is within the limits
	return core.Message{Name: r.Key, Headers: headers}
}

// tooLarge is why a record cannot be delivered whole.
func tooLarge(r *reader.Record, format string, args ...any) *core.Fault {
	return &core.Fault{
		Code:    core.FaultTooLarge,
		Message: fmt.Sprintf("record %d of key %s: ", r.Sequence, r.Key) + fmt.Sprintf(format, args...),
	}
}

// messageBytes is what a message counts against limits.
func messageBytes(m *core.Message) int {
	n := len(m.Payload)
	for i := range m.Headers {
		n += len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}
