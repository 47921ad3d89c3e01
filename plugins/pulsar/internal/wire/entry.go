// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// An EntryKind is why an entry cannot be read.
type EntryKind int

// The reasons.
const (
	EntryMalformed  EntryKind = iota // not of the protocol
	EntryChecksum                    // the checksum does not fit what has come
	EntryEncrypted                   // by its producer
	EntryChunked                     // part of a message that is in several entries
	EntryCompressed                  // compressed in a way not known, or not as it says
)

// String says it in a word.
func (k EntryKind) String() string {
	switch k {
	case EntryChecksum:
		return "checksum"
	case EntryEncrypted:
		return "encrypted"
	case EntryChunked:
		return "chunked"
	case EntryCompressed:
		return "compression"
	}
	return "malformed"
}

// An EntryError is an entry whose messages cannot be read. The connection goes on.
type EntryError struct {
	Kind          EntryKind
	Ledger, Entry int64
	Reason        string
	Err           error // why it cannot be decompressed, or nil
}

// Error says where the entry is and what is wrong with it.
func (e *EntryError) Error() string {
	return fmt.Sprintf("entry %d:%d: %s: %s", e.Ledger, e.Entry, e.Kind, e.Reason)
}

// Unwrap returns Err.
func (e *EntryError) Unwrap() error { return e.Err }

const (
	// maxParts is how many messages and properties an entry may have in all: each costs
	// much more memory than the few bytes that can make one.
	maxParts = 1 << 18
	// propertyChunk is how many properties memory is taken for at once.
	propertyChunk = 128
	// propertySpread is how many bytes of entries share memory for properties, which
	// keeps all of these alive.
	propertySpread = chunkSize
	// messageBytes is the least that a message of a batch has: its size, and the size of
	// its payload.
	messageBytes = sizeBytes + 2
)

// metadata is what is read of a MessageMetadata, and of a SingleMessageMetadata.
type metadata struct {
	publishTime, eventTime int64
	key, ordering          []byte
	properties             []Property

	compression  Compression
	uncompressed uint32
	count        int32 // messages of the batch
	batch        bool
	encrypted    bool
	chunks       int32

	size      int32 // of the payload, in a batch
	compacted bool  // taken away by compaction, in a batch
}

// Messages appends the messages of the entry to dst: those of a batch, without the ones
// that are acked by Left or were taken away by compaction. It sets d.Count. Keys that
// were written as base64 stay as they are. Errors are *EntryError, with dst as it was.
//
// The format is that of the protocol's documentation: broker entry metadata (PIP-70),
// a checksum of the rest (CRC32-C), the metadata with its size, the payload; the first
// two may be missing. In a batch the payload is messages, each with the size of its
// metadata, its metadata, and its payload.
func (d *Delivery) Messages(dst []Message) ([]Message, error) {
	d.Count, d.Kept = 1, len(d.Payload)
	d.share(len(d.Payload))
	defer d.unshare()
	b, summed, err := d.unwrap()
	if err != nil {
		return dst, err
	}
	var m metadata
	payload, readable := d.metadata(b, &m)
	if readable && m.batch {
		d.Count = max(int(m.count), 1)
	}
	switch {
	case !summed:
		return dst, d.bad(EntryChecksum, "the checksum does not fit")
	case !readable:
		return dst, d.bad(EntryMalformed, "the metadata is broken")
	case m.encrypted:
		return dst, d.bad(EntryEncrypted, "it is encrypted, and there is no key")
	case len(m.properties) >= maxParts:
		return dst, d.bad(EntryMalformed, "%d properties, over the limit of %d", len(m.properties), maxParts-1)
	case m.chunks > 1:
		return dst, d.bad(EntryChunked, "a message in %d chunks", m.chunks)
	}
	if m.compression != NoCompression && (m.uncompressed > 0 || len(payload) > 0) {
		raw, err := m.compression.decompress(payload, m.uncompressed)
		if err != nil {
			e := d.bad(EntryCompressed, "%s: %v", m.compression, err)
			e.Err = err
			return dst, e
		}
		payload = raw
		d.Kept += len(raw)
		d.share(len(raw))
	}
	if m.batch {
		return d.batch(dst, &m, payload)
	}
	id := MessageID{Ledger: d.Ledger, Entry: d.Entry, Batch: NoBatch}
	return append(dst, Message{
		ID: id, Redelivered: d.Redelivered, Key: m.key, OrderingKey: m.ordering,
		PublishTime: m.publishTime, EventTime: m.eventTime, Properties: m.properties, Payload: payload,
	}), nil
}

// unwrap returns the metadata and what follows it, and whether the checksum fits.
func (d *Delivery) unwrap() ([]byte, bool, error) {
	b := d.Payload
	if len(b) >= magicBytes+sizeBytes && binary.BigEndian.Uint16(b) == magicBroker {
		n := binary.BigEndian.Uint32(b[magicBytes:])
		if b = b[magicBytes+sizeBytes:]; uint64(n) > uint64(len(b)) {
			return nil, false, d.bad(EntryMalformed, "%d bytes of the broker are to be in %d", n, len(b))
		}
		b = b[n:]
	}
	if len(b) < magicBytes+sumBytes || binary.BigEndian.Uint16(b) != magicChecksum {
		return b, true, nil
	}
	sum := binary.BigEndian.Uint32(b[magicBytes:])
	b = b[magicBytes+sumBytes:]
	return b, crc32.Checksum(b, castagnoli) == sum, nil
}

// metadata reads the metadata of an entry and returns the payload.
func (d *Delivery) metadata(b []byte, m *metadata) ([]byte, bool) {
	head, payload, ok := cut(b)
	if !ok {
		return nil, false
	}
	from := len(d.properties)
	s := scan{b: head}
	for s.next() {
		switch s.number {
		case 3:
			m.publishTime = s.int64()
		case 4:
			from = d.property(&s, from)
		case 6:
			m.key = s.bytes
		case 8:
			m.compression = Compression(s.int32())
		case 9:
			m.uncompressed = uint32(s.varint) //nolint:gosec // uint32 in the protocol
		case 11:
			m.count, m.batch = s.int32(), true
		case 12:
			m.eventTime = s.int64()
		case 13:
			m.encrypted = true
		case 18:
			m.ordering = s.bytes
		case 27:
			m.chunks = s.int32()
		}
	}
	m.properties = d.taken(from)
	return payload, !s.broken
}

// batch appends the messages of a batch.
func (d *Delivery) batch(dst []Message, of *metadata, b []byte) ([]Message, error) {
	count := int(of.count)
	switch {
	case count < 1 || count > len(b)/messageBytes:
		return dst, d.bad(EntryMalformed, "%d messages are to be in %d bytes", count, len(b))
	case count > maxParts:
		return dst, d.bad(EntryMalformed, "a batch of %d messages, over the limit of %d", count, maxParts)
	}
	before, parts := len(dst), 0
	refuse := func(format string, args ...any) ([]Message, error) {
		clear(dst[before:])
		return dst[:before], d.bad(EntryMalformed, format, args...)
	}
	for i := range count {
		var m metadata
		head, rest, ok := cut(b)
		if !ok || !d.single(head, &m) || m.size < 0 || int(m.size) > len(rest) {
			return refuse("message %d of the batch is broken", i)
		}
		if parts += 1 + len(m.properties); parts > maxParts {
			return refuse("a batch with more than %d messages and properties", maxParts)
		}
		payload := rest[:m.size:m.size]
		b = rest[m.size:]
		if m.compacted || d.acked(i) {
			continue
		}
		dst = append(dst, Message{
			ID:          MessageID{Ledger: d.Ledger, Entry: d.Entry, Batch: int32(i), Size: of.count}, //nolint:gosec // below count
			Redelivered: d.Redelivered, Key: m.key, OrderingKey: m.ordering,
			PublishTime: of.publishTime, EventTime: m.eventTime, Properties: m.properties, Payload: payload,
		})
	}
	if len(dst)-before < count {
		some(dst[before:], count)
	}
	return dst, nil
}

// some notes in messages of a batch of count that the others do not come with them.
func some(messages []Message, count int) {
	left := make([]uint64, (count+63)/64)
	for i := range messages {
		at := messages[i].ID.Batch
		left[at/64] |= 1 << (at % 64)
	}
	for i := range messages {
		messages[i].Left = left
	}
}

// single reads the metadata of a message of a batch.
func (d *Delivery) single(head []byte, m *metadata) bool {
	from := len(d.properties)
	s := scan{b: head}
	for s.next() {
		switch s.number {
		case 1:
			from = d.property(&s, from)
		case 2:
			m.key = s.bytes
		case 3:
			m.size = s.int32()
		case 4:
			m.compacted = s.varint != 0
		case 5:
			m.eventTime = s.int64()
		case 7:
			m.ordering = s.bytes
		}
	}
	m.properties = d.taken(from)
	return !s.broken
}

// property adds the property that s is at to those of the message that begin at from
// in d.properties, and returns where they begin now.
func (d *Delivery) property(s *scan, from int) int {
	held := d.properties[from:]
	if len(held) >= maxParts {
		return from // they are too many for an entry already
	}
	if len(d.properties) == cap(d.properties) {
		d.properties = append(make([]Property, 0, max(propertyChunk, 2*len(held))), held...)
		from = 0
	}
	p, ok := shortProperty(s.bytes)
	if !ok {
		f := scan{b: s.bytes}
		for f.next() {
			switch f.number {
			case 1:
				p.Name = f.bytes
			case 2:
				p.Value = f.bytes
			}
		}
		s.broken = s.broken || f.broken
	}
	d.properties = append(d.properties, p)
	return from
}

// shortProperty reads a KeyValue as nearly all are: the name, then the value, both
// below 128 bytes.
func shortProperty(b []byte) (p Property, ok bool) {
	if len(b) < 4 || b[0] != 1<<3|2 || b[1] >= 0x80 {
		return p, false
	}
	value := int(b[1]) + 2
	if value+2 > len(b) || b[value] != 2<<3|2 || b[value+1] >= 0x80 || value+2+int(b[value+1]) != len(b) {
		return p, false
	}
	return Property{Name: b[2:value:value], Value: b[value+2 : len(b) : len(b)]}, true
}

// share has the memory for properties serve an entry of n bytes more. Where it served
// as many as it may there is another.
func (d *Delivery) share(n int) {
	if d.spread += n; d.spread > propertySpread {
		d.properties, d.spread = nil, n
	}
}

// unshare gives up memory for properties that keeps a large entry alive.
func (d *Delivery) unshare() {
	if d.spread > propertySpread {
		d.properties, d.spread = nil, 0
	}
}

// taken are the properties from there on, nil where there are none.
func (d *Delivery) taken(from int) []Property {
	if n := len(d.properties); from < n {
		return d.properties[from:n:n]
	}
	return nil
}

// acked reports whether a message of a batch is acked already.
func (d *Delivery) acked(i int) bool {
	if d.Left == nil {
		return false
	}
	word := i / 64
	return word >= len(d.Left) || d.Left[word]>>(i%64)&1 == 0
}

// cut divides b after the bytes whose size it begins with.
func cut(b []byte) (head, rest []byte, ok bool) {
	if len(b) < sizeBytes {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[sizeBytes:]; uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

func (d *Delivery) bad(kind EntryKind, format string, args ...any) *EntryError {
	return &EntryError{Kind: kind, Ledger: d.Ledger, Entry: d.Entry, Reason: fmt.Sprintf(format, args...)}
}
