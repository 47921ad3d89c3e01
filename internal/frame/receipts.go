// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/core"
)

// ReceiptEncoder writes PublishResponses, as many as the limits ask for: Reset,
// then Size and Append after each Next that is true.
type ReceiptEncoder struct {
	cut      cutter[Receipt]
	receipts []Receipt // of this wire message
	content  int       // their size
}

// Reset starts with rs, which must not change until the last Append. It refuses
// them all when one of them cannot travel.
func (e *ReceiptEncoder) Reset(rs []Receipt) *core.Fault {
	*e = ReceiptEncoder{cut: newCutter(rs, MaxEntries, sizeReceipt)}
	if !e.cut.fits() {
		return tooLong("a receipt")
	}
	return nil
}

// Next moves to the next wire message and reports whether there is one.
func (e *ReceiptEncoder) Next() bool {
	e.receipts, e.content = e.cut.next()
	return len(e.receipts) > 0
}

// Size is the size of the wire message.
func (e *ReceiptEncoder) Size() int { return e.content }

// Append appends the wire message.
func (e *ReceiptEncoder) Append(b []byte) []byte {
	for i := range e.receipts {
		r := &e.receipts[i]
		b = appendLength(b, 1, sizeReceipt(r))
		b = appendUint(b, 1, r.ID)
		b = appendUint(b, 2, uint64(r.Status))
		b = appendFault(b, 3, r.Fault)
		b = appendBool(b, 4, r.Unrouted)
		b = appendBytes(b, 5, r.Position)
	}
	return b
}

func sizeReceipt(r *Receipt) int {
	return sizeUint(r.ID) + sizeUint(uint64(r.Status)) + sizeFaultField(r.Fault) + sizeBool(r.Unrouted) +
		sizeBytes(len(r.Position))
}

// DecodeReceipts appends the receipts in b to rs. Nothing of b is kept. After
// an error rs is as it was.
func DecodeReceipts(b []byte, rs []Receipt) ([]Receipt, error) {
	before := len(rs)
	var positions []byte // one piece of memory for all of the frame
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err == nil && tag != 1<<3|wireBytes {
			err = m.skip(tag)
		} else if err == nil {
			rs, positions, err = readReceipt(&m, rs, positions, before)
		}
		if err != nil {
			return rs[:before], fmt.Errorf("decode PublishResponse: %w", err)
		}
	}
	return rs, nil
}

func readReceipt(m *reader, rs []Receipt, positions []byte, before int) ([]Receipt, []byte, error) {
	if len(rs)-before == MaxEntries {
		return rs, positions, errTooMany
	}
	b, err := m.bytes()
	if err != nil {
		return rs, positions, err
	}
	left := len(m.b) - m.i + len(b) // what the positions from here on can come to
	rs = append(rs, Receipt{})
	r := &rs[len(rs)-1]
	for f := (reader{b: b}); f.more(); {
		tag, err := f.tag()
		if err != nil {
			return rs, positions, err
		}
		var n uint64
		switch tag {
		case 1<<3 | wireVarint:
			r.ID, err = f.varint()
		case 2<<3 | wireVarint:
			s, e := f.enum(uint8(ReceiptUnknown))
			r.Status, err = ReceiptStatus(s), e
		case 3<<3 | wireBytes:
			r.Fault, err = f.fault(r.Fault)
		case 4<<3 | wireVarint:
			n, err = f.varint()
			r.Unrouted = n != 0
		case 5<<3 | wireBytes:
			var p []byte
			p, err = f.bytes()
			if positions == nil && len(p) > 0 {
				positions = make([]byte, 0, left)
			}
			from := len(positions)
			positions = append(positions, p...)
			r.Position = slices.Clip(positions[from:])
		default:
			err = f.skip(tag)
		}
		if err != nil {
			return rs, positions, err
		}
	}
	return rs, positions, nil
}
