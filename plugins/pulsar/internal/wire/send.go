// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// What begins a part of a payload (PulsarApi.proto, "Binary protocol": checksum, and
// PIP-70: broker entry metadata).
const (
	magicChecksum = 0x0e01
	magicBroker   = 0x0e02
	magicBytes    = 2
	sumBytes      = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // never written to

// Send is how messages are sent.
type Send struct {
	Producer    uint64
	Sequence    uint64 // the number of the message, of a batch the first; its receipt has it
	Name        string // of the producer
	PublishTime int64  // milliseconds since 1970
	Compression Compression
}

// AppendSend appends a SEND of one message that is an entry of its own. m.Sequence is
// not looked at: s says the number.
func AppendSend(dst []byte, s *Send, m *Outgoing) []byte {
	e := beginSend(dst, s, 1, s.Sequence)
	b := appendProperties(e.b, 4, m.Properties)
	if m.Key != "" {
		b = appendText(b, 6, m.Key)
	}
	b = s.appendSizes(b, len(m.Payload))
	if m.EventTime > 0 {
		b = appendVarint(b, 12, uint64(m.EventTime))
	}
	if m.OrderingKey != "" {
		b = appendText(b, 18, m.OrderingKey)
	}
	if m.DeliverAt > 0 {
		b = appendVarint(b, 19, uint64(m.DeliverAt))
	}
	return e.end(b, s, m.Payload)
}

// Batch is messages that are sent as one entry. Its zero value is empty. It is for one
// goroutine.
type Batch struct {
	b        []byte // the messages, each with its metadata before it
	count    int
	key      string // of the first message, by which brokers choose a consumer on KeyShared
	ordering string // as key
	last     *int64 // the last message's own number
}

// Add adds a message, of which nothing is kept but its keys. A message with DeliverAt
// does not belong into a batch: there the time is of all messages, and is not written.
func (t *Batch) Add(m *Outgoing) {
	if t.count == 0 {
		t.key, t.ordering = m.Key, m.OrderingKey
	}
	at := len(t.b)
	b := append(t.b, make([]byte, sizeBytes)...)
	b = appendProperties(b, 1, m.Properties)
	if m.Key != "" {
		b = appendText(b, 2, m.Key)
	}
	b = appendVarint(b, 3, uint64(len(m.Payload)))
	if m.EventTime > 0 {
		b = appendVarint(b, 5, uint64(m.EventTime))
	}
	if m.OrderingKey != "" {
		b = appendText(b, 7, m.OrderingKey)
	}
	if m.Sequence != nil {
		b = appendVarint(b, 8, uint64(*m.Sequence)) //nolint:gosec // uint64 in the protocol
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-sizeBytes)) //nolint:gosec // below the size of a message
	t.b = append(b, m.Payload...)
	t.count++
	t.last = m.Sequence
}

// Len is the number of messages.
func (t *Batch) Len() int { return t.count }

// Bytes is the size of the messages with their metadata, before compression.
func (t *Batch) Bytes() int { return len(t.b) }

// Reset removes the messages and keeps the memory.
func (t *Batch) Reset() { *t = Batch{b: t.b[:0]} }

// AppendSend appends a SEND of the messages, of which there is at least one.
// s.Sequence is the number of the first; that of the last is its own, or as many more
// as there are messages.
func (t *Batch) AppendSend(dst []byte, s *Send) []byte {
	highest := s.Sequence + uint64(t.count) - 1 //nolint:gosec // a count, not 0
	if t.last != nil {
		highest = max(s.Sequence, uint64(*t.last)) //nolint:gosec // uint64 in the protocol
	}
	e := beginSend(dst, s, t.count, highest)
	b := e.b
	if t.key != "" {
		b = appendText(b, 6, t.key)
	}
	b = s.appendSizes(b, len(t.b))
	b = appendVarint(b, 11, uint64(t.count)) //nolint:gosec // a count
	if t.ordering != "" {
		b = appendText(b, 18, t.ordering)
	}
	if highest != s.Sequence {
		b = appendVarint(b, 24, highest)
	}
	return e.end(b, s, t.b)
}

// entry is a SEND that is being written: frame is where it begins, metadata where the
// size of its metadata is.
type entry struct {
	b               []byte
	frame, metadata int
}

// beginSend appends a SEND up to the first three fields of the entry's metadata.
func beginSend(dst []byte, s *Send, count int, highest uint64) entry {
	frame := len(dst)
	b := append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(1<<3), byte(TypeSend), byte(TypeSend<<3|2), 0)
	command := len(b)
	b = appendVarint(b, 1, s.Producer)
	b = appendVarint(b, 2, s.Sequence)
	if count > 1 {
		b = appendVarint(b, 3, uint64(count)) //nolint:gosec // a count
	}
	if highest != s.Sequence {
		b = appendVarint(b, 6, highest)
	}
	b[command-1] = byte(len(b) - command)                                             // four numbers: below 128
	binary.BigEndian.PutUint32(b[frame+sizeBytes:], uint32(len(b)-frame-headerBytes)) //nolint:gosec // a few bytes
	b = append(b, magicChecksum>>8, magicChecksum&0xff, 0, 0, 0, 0, 0, 0, 0, 0)
	metadata := len(b) - sizeBytes
	b = appendText(b, 1, s.Name)
	b = appendVarint(b, 2, s.Sequence)
	b = appendVarint(b, 3, uint64(s.PublishTime)) //nolint:gosec // since 1970
	return entry{b: b, frame: frame, metadata: metadata}
}

// end appends the payload to a SEND, and writes its sizes and its checksum.
func (e *entry) end(b []byte, s *Send, payload []byte) []byte {
	binary.BigEndian.PutUint32(b[e.metadata:], uint32(len(b)-e.metadata-sizeBytes)) //nolint:gosec // below the size of a message
	if s.Compression == NoCompression || len(payload) == 0 {
		b = append(b, payload...)
	} else {
		b = appendCompressed(b, s.Compression, payload)
	}
	binary.BigEndian.PutUint32(b[e.frame:], uint32(len(b)-e.frame-sizeBytes)) //nolint:gosec // below the size of a message
	sum := crc32.Checksum(b[e.metadata:], castagnoli)
	binary.BigEndian.PutUint32(b[e.metadata-sumBytes:], sum)
	return b
}

// appendSizes appends how a payload of n bytes is compressed, and n.
func (s *Send) appendSizes(b []byte, n int) []byte {
	if s.Compression != NoCompression && n > 0 {
		b = appendVarint(b, 8, uint64(s.Compression)) //nolint:gosec // one of the constants
	}
	return appendVarint(b, 9, uint64(n)) //nolint:gosec // a length
}

// appendProperties appends properties as the field with this number.
func appendProperties(b []byte, number protowire.Number, properties []OutgoingProperty) []byte {
	for i := range properties {
		p := &properties[i]
		n := 2 + sizeBlob(len(p.Name)) + sizeBlob(len(p.Value))
		b = slices.Grow(b, n+2*binary.MaxVarintLen32)
		b = append(b, byte(number<<3|2))
		b = protowire.AppendVarint(b, uint64(n)) //nolint:gosec // a length
		b = append(b, 1<<3|2)
		b = protowire.AppendString(b, p.Name)
		b = append(b, 2<<3|2)
		b = protowire.AppendBytes(b, p.Value)
	}
	return b
}

// sizeBlob is the size of n bytes with their length before them.
func sizeBlob(n int) int { return sizeVarint(uint64(n)) + n } //nolint:gosec // a length
