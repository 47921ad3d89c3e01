// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"fmt"

	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

// Parser reads the records of one file out of its bytes.
type Parser struct {
	// Interval is the file's beacon interval.
	Interval uint32
	// Spill takes the records that beacons cut, put together again. A record's
	// bytes are appended where the capacity suffices; otherwise Spill is replaced
	// by a new array. What is in it is never moved, so all records stay good until
	// the caller sets Spill back (Spill[:0] uses it again, nil lets it go).
	Spill []byte

	spans []span                      // of the record being read
	head  [1 + MaxKey + fixedLen]byte // of a record that is cut
}

// Next reads one record. b begins at the file offset off, which is the end of
// the header, of a record, or of a beacon at which no record was cut, or the
// place of a beacon. Next consumes a beacon standing there and then one record,
// and says how many bytes that were.
//
// The error is a *ShortError or a *DamageError; nothing is consumed then, and
// rec has no meaning unless the damage says where to resume.
func (p *Parser) Next(b []byte, off int64, rec *Record) (int, error) {
	begin, payload, err := p.Head(b, off, rec)
	if err != nil {
		return 0, err
	}
	head := 1 + len(rec.Key) + fixedLen
	total := head + payload + TailLen
	end := begin + total
	if int64(total) > p.room(off+int64(begin)) {
		if end, err = p.walk(b, off, begin, total, total, rec); err != nil {
			return 0, err
		}
		r := p.splice(b, total)
		rec.read(r, len(rec.Key))
		return p.finish(r, b, off, begin, end, head, rec)
	}
	if end > len(b) {
		return 0, &ShortError{Need: end}
	}
	return p.finish(b[begin:end], b, off, begin, end, head, rec)
}

// Head reads a record's head alone, as Next does: where in b the record begins,
// and how long its payload is. rec has neither payload nor checksum; its key is
// good until the next call where a beacon cuts the head.
func (p *Parser) Head(b []byte, off int64, rec *Record) (begin, payload int, err error) {
	*rec = Record{}
	room := p.room(off) // how far the record goes without a beacon
	if room == int64(p.Interval) && off > 0 {
		if begin, err = p.pass(b, off); err != nil {
			return 0, 0, err
		}
		room -= int64(begin)
	}
	at := off + int64(begin)
	r := b[begin:]
	if len(r) == 0 {
		return 0, 0, &ShortError{Need: begin + RecordOverhead + 1}
	}
	k := int(r[0])
	if k == 0 || k > MaxKey {
		return 0, 0, &DamageError{Offset: at, Reason: fmt.Sprintf("a record with a key of %d bytes", k)}
	}
	head := 1 + k + fixedLen
	if int64(head) > room || head > len(r) {
		if here := r[1:min(int64(len(r)), int64(1+k), room)]; !streamkey.Legal(here) {
			return 0, 0, badKey(here, at)
		}
		if _, err := p.walk(b, off, begin, head, 0, rec); err != nil {
			return 0, 0, err
		}
		r = p.head[:0]
		for _, s := range p.spans {
			r = append(r, b[s.from:s.to]...)
		}
	}
	n := rec.read(r, k)
	if !streamkey.Legal(rec.Key) {
		return 0, 0, badKey(rec.Key, at)
	}
	if n > int64(MaxPayload) {
		return 0, 0, damage(rec, at, "a payload of %d bytes, at most %d are possible", n, MaxPayload)
	}
	return begin, int(n), nil
}

// room is how many bytes there are between off and the next beacon's place.
func (p *Parser) room(off int64) int64 {
	return int64(p.Interval) - off%int64(p.Interval)
}

// finish looks at the payload and the end of a record. r is all of it, head the
// length of its head; end is where it ends in b.
func (p *Parser) finish(r, b []byte, off int64, begin, end, head int, rec *Record) (int, error) {
	tail := len(r) - TailLen
	at := off + int64(begin)
	rec.Payload = r[head:tail:tail]
	rec.Checksum = binary.BigEndian.Uint16(r[tail:])
	if last := r[len(r)-1]; last != closing {
		return 0, damage(rec, at, "it closes with %02x, not with %02x", last, closing)
	}
	if crc := Checksum(rec.Payload); crc != rec.Checksum {
		err := damage(rec, at, "the payload has the checksum %04x, the record says %04x", crc, rec.Checksum)
		if p.begins(b[end:], off+int64(end)) {
			err.Resume = end
		}
		return 0, err
	}
	return end, nil
}

// begins reports whether a record or beacon may begin at the offset off, where
// b begins. Nothing is not against it.
func (p *Parser) begins(b []byte, off int64) bool {
	if len(b) == 0 {
		return true
	}
	if off%int64(p.Interval) == 0 {
		return b[0] == closing
	}
	k := int(b[0])
	return k > 0 && k <= MaxKey && streamkey.Legal(b[1:min(len(b), 1+k, int(p.room(off)))])
}

func badKey(key []byte, off int64) *DamageError {
	return &DamageError{Offset: off, Reason: "a record with the key " + quote(key)}
}

func damage(rec *Record, off int64, format string, args ...any) *DamageError {
	return &DamageError{Offset: off, Key: string(rec.Key), Sequence: rec.Sequence, Reason: fmt.Sprintf(format, args...)}
}
