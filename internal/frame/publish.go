// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// PublishEncoder writes PublishRequests, as many as the limits ask for: Reset,
// then Size and Append after each Next that is true.
type PublishEncoder struct {
	cut     cutter[Outgoing]
	items   []Outgoing // of this wire message
	content int        // their size
}

// Reset starts with items, which must not change until the last Append. It
// refuses them all when one of them cannot travel.
func (e *PublishEncoder) Reset(items []Outgoing) *core.Fault {
	*e = PublishEncoder{cut: newCutter(items, MaxItems, sizeOutgoing)}
	if e.cut.small() {
		return nil
	}
	for i := range items {
		if f := checkSize(&items[i].Message, sizeOutgoing(&items[i])); f != nil {
			return f
		}
	}
	return nil
}

// Next moves to the next wire message and reports whether there is one.
func (e *PublishEncoder) Next() bool {
	e.items, e.content = e.cut.next()
	return len(e.items) > 0
}

// Size is the size of the wire message.
func (e *PublishEncoder) Size() int { return e.content }

// Append appends the wire message.
func (e *PublishEncoder) Append(b []byte) []byte {
	for i := range e.items {
		b = appendOutgoing(b, &e.items[i])
	}
	return b
}

// sizeOutgoing is the size of an Outgoing's content.
func sizeOutgoing(o *Outgoing) int {
	return sizeUint(o.ID) + sizeBytes(len(o.Message.Name)) + sizeHeaders(o.Message.Headers) +
		sizeBytes(len(o.Message.Payload)) + sizeUint(uint64(o.Purpose)) + sizeBytes(len(o.Carry)) +
		sizeUint(uint64(o.DeliverAfter)) + sizeBytes(len(o.DedupID)) + sizeBytes(len(o.Options))
}

func appendOutgoing(b []byte, o *Outgoing) []byte {
	b = appendLength(b, 1, sizeOutgoing(o))
	b = appendUint(b, 1, o.ID)
	b = appendString(b, 2, o.Message.Name)
	b = appendHeaders(b, 3, o.Message.Headers)
	b = appendBytes(b, 4, o.Message.Payload)
	b = appendUint(b, 5, uint64(o.Purpose))
	b = appendBytes(b, 6, o.Carry)
	b = appendUint(b, 7, uint64(o.DeliverAfter))
	b = appendString(b, 8, o.DedupID)
	return appendBytes(b, 9, o.Options)
}

// DecodePublishes reads the bytes of slab, a buffer of the Pool, and takes it
// over: the frame holds it until it is released.
func DecodePublishes(slab *[]byte) (*Publishes, error) {
	p := PublishesOf(count(*slab, 1))
	p.store.slab = slab
	w, _ := tables.Get().(*words)
	defer tables.Put(w)
	for m := (reader{b: *slab}); m.more(); {
		if err := readPublish(&m, p, w); err != nil {
			p.Release()
			return nil, fmt.Errorf("decode PublishRequest: %w", err)
		}
	}
	return p, nil
}

// readPublish reads one field of a PublishRequest.
func readPublish(m *reader, p *Publishes, w *words) error {
	tag, err := m.tag()
	if err != nil {
		return err
	}
	if tag != 1<<3|wireBytes {
		return m.skip(tag)
	}
	if len(p.Items) == MaxItems {
		return errTooMany
	}
	v, err := m.bytes()
	if err != nil {
		return err
	}
	p.Items = append(p.Items, Outgoing{})
	return readOutgoing(v, &p.Items[len(p.Items)-1], &p.store, w)
}

func readOutgoing(b []byte, o *Outgoing, s *store, w *words) error {
	w.begin()
	first := len(s.headers)
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		var n uint64
		switch tag {
		case 1<<3 | wireVarint:
			o.ID, err = m.varint()
		case 2<<3 | wireBytes:
			o.Message.Name, err = m.word(w)
		case 3<<3 | wireBytes:
			err = s.header(&m, w)
		case 4<<3 | wireBytes:
			o.Message.Payload, err = m.bytes()
		case 5<<3 | wireVarint:
			o.Purpose, err = m.enum(uint8(transportpb.Purpose_PURPOSE_REPLY))
		case 6<<3 | wireBytes:
			o.Carry, err = m.bytes()
		case 7<<3 | wireVarint:
			n, err = m.varint()
			o.DeliverAfter = time.Duration(n)
		case 8<<3 | wireBytes:
			o.DedupID, err = m.ownString() // another one each
		case 9<<3 | wireBytes:
			o.Options, err = m.bytes()
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	o.Message.Headers = s.cut(first)
	return nil
}
