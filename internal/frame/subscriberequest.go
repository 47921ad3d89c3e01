// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// SubscribeRequestEncoder writes a SubscribeRequest in as many wire messages as
// the limits ask for: Reset, then Size and Append after each Next that is true.
type SubscribeRequestEncoder struct {
	settle  cutter[VerdictRun]
	runs    []VerdictRun // of this wire message
	content int          // their size
	part    []byte       // any other part, written
	parts   int          // how many of those are left
}

// Reset starts with r, which must not change until the last Append. It refuses
// r as a whole when a part of it cannot travel.
func (e *SubscribeRequestEncoder) Reset(r *SubscribeRequest) (refused *core.Fault) {
	*e = SubscribeRequestEncoder{part: e.part[:0], parts: 1}
	switch {
	case len(r.Settle) > 0:
		e.parts = 0
		e.settle = newCutter(r.Settle, MaxEntries, sizeRun)
		if !e.settle.fits() {
			return tooLong("the reason of a reject")
		}
	case r.Credit != nil:
		e.part = appendLength(e.part, 2, sizeUint(r.Credit.Messages)+sizeUint(r.Credit.Bytes))
		e.part = appendUint(e.part, 1, r.Credit.Messages)
		e.part = appendUint(e.part, 2, r.Credit.Bytes)
	case r.Start != nil:
		e.part, refused = appendPart(e.part, 1, r.Start, MaxWireSize)
	case r.Seek != nil:
		e.part, refused = appendPart(e.part, 4, r.Seek, MaxWireSize)
	case r.Stop:
		e.part = appendLength(e.part, 5, 0)
	default:
		e.parts = 0
	}
	return refused
}

// Next moves to the next wire message and reports whether there is one.
func (e *SubscribeRequestEncoder) Next() bool {
	if e.settle.ahead > 0 {
		e.runs, e.content = e.settle.next()
		return true
	}
	e.parts--
	return e.parts == 0
}

// Size is the size of the wire message.
func (e *SubscribeRequestEncoder) Size() int {
	if len(e.runs) > 0 {
		return sizeMessage(e.content)
	}
	return len(e.part)
}

// Append appends the wire message.
func (e *SubscribeRequestEncoder) Append(b []byte) []byte {
	if len(e.runs) == 0 {
		return append(b, e.part...)
	}
	b = appendLength(b, 3, e.content)
	for i := range e.runs {
		b = appendRun(b, &e.runs[i])
	}
	return b
}

func sizeRun(v *VerdictRun) int {
	return sizeUint(v.First) + sizeUint(v.Count) + sizeUint(uint64(v.Kind)) + sizeUint(uint64(v.Delay)) +
		sizeUint(uint64(v.Hold)) + sizeBytes(len(v.Reason)) + sizeBool(v.WantResult)
}

func appendRun(b []byte, v *VerdictRun) []byte {
	b = appendLength(b, 1, sizeRun(v))
	b = appendUint(b, 1, v.First)
	b = appendUint(b, 2, v.Count)
	b = appendUint(b, 3, uint64(v.Kind))
	b = appendUint(b, 4, uint64(v.Delay))
	b = appendUint(b, 5, uint64(v.Hold))
	b = appendString(b, 6, v.Reason)
	return appendBool(b, 7, v.WantResult)
}

// SubscribeRequestDecoder reads SubscribeRequests one after the other into
// memory that it uses again.
type SubscribeRequestDecoder struct {
	runs   []VerdictRun
	credit Credit
}

// Decode reads b into r. What r then holds is valid until the next Decode;
// nothing of b is kept.
func (d *SubscribeRequestDecoder) Decode(b []byte, r *SubscribeRequest) error {
	*r = SubscribeRequest{}
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return fmt.Errorf("decode SubscribeRequest: %w", err)
		}
		if err := d.part(tag, &m, r); err != nil {
			return fmt.Errorf("decode SubscribeRequest: %w", err)
		}
	}
	return nil
}

// part reads one part. A later part replaces an earlier one of another kind
// and adds to one of its own, as protobuf has it.
func (d *SubscribeRequestDecoder) part(tag uint64, m *reader, r *SubscribeRequest) error {
	if n := tag >> 3; n < 1 || n > 5 || tag&7 != wireBytes {
		return m.skip(tag)
	}
	b, err := m.bytes()
	if err != nil {
		return err
	}
	switch tag >> 3 {
	case 1:
		*r = SubscribeRequest{Start: orNew(r.Start)}
		return merge(b, r.Start)
	case 2:
		if r.Credit == nil {
			d.credit = Credit{}
		}
		*r = SubscribeRequest{Credit: &d.credit}
		return readCredit(b, r.Credit)
	case 3:
		if r.Settle == nil {
			d.runs = d.runs[:0]
		}
		d.runs, err = readEntries(b, d.runs, readRun)
		*r = SubscribeRequest{Settle: d.runs}
		return err
	case 4:
		*r = SubscribeRequest{Seek: orNew(r.Seek)}
		return merge(b, r.Seek)
	default:
		*r = SubscribeRequest{Stop: true}
		return merge(b, &transportpb.SubscribeStop{})
	}
}

// orNew returns m, or a new one when it is nil.
func orNew[T any](m *T) *T {
	if m == nil {
		return new(T)
	}
	return m
}

// merge reads a part that generated code reads.
func merge(b []byte, m proto.Message) error {
	return proto.UnmarshalOptions{Merge: true, DiscardUnknown: true}.Unmarshal(b, m)
}

func readCredit(b []byte, c *Credit) error {
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		switch tag {
		case 1<<3 | wireVarint:
			c.Messages, err = m.varint()
		case 2<<3 | wireVarint:
			c.Bytes, err = m.varint()
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readRun(b []byte, v *VerdictRun) error {
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		var n uint64
		switch tag {
		case 1<<3 | wireVarint:
			v.First, err = m.varint()
		case 2<<3 | wireVarint:
			v.Count, err = m.varint()
		case 3<<3 | wireVarint:
			k, e := m.enum(uint8(core.VerdictExtend))
			v.Kind, err = core.VerdictKind(k), e
		case 4<<3 | wireVarint:
			n, err = m.varint()
			v.Delay = time.Duration(n)
		case 5<<3 | wireVarint:
			n, err = m.varint()
			v.Hold = time.Duration(n)
		case 6<<3 | wireBytes:
			v.Reason, err = m.ownString()
		case 7<<3 | wireVarint:
			n, err = m.varint()
			v.WantResult = n != 0
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
