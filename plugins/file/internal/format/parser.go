// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"errors"
	"fmt"
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
// what rec holds has no meaning.
func (p *Parser) Next(b []byte, off int64, rec *Record) (int, error) {
	begin := 0
	room := p.room(off) // how far the record goes without a beacon
	*rec = Record{}
	if room == int64(p.Interval) && off > 0 {
		size, err := p.pass(b, off)
		if err != nil {
			return 0, err
		}
		begin = size
		room -= int64(size)
	}
	r := b[begin:]
	if len(r) == 0 {
		return 0, &ShortError{Need: begin + RecordOverhead + 1}
	}
	k := int(r[0])
	if k == 0 || k > MaxKey {
		return 0, &DamageError{Offset: off + int64(begin), Reason: fmt.Sprintf("a record with a key of %d bytes", k)}
	}
	head := 1 + k + fixedLen
	if int64(head) > room || head > len(r) {
		return p.assemble(b, off, begin, rec)
	}
	payload := rec.read(r, k)
	if err := possible(rec, payload, off+int64(begin)); err != nil {
		return 0, err
	}
	total := int64(head) + payload + tailLen
	if total > room {
		return p.assemble(b, off, begin, rec)
	}
	if total > int64(len(r)) {
		return 0, &ShortError{Need: begin + int(total)}
	}
	return p.finish(r[:total], b, off, begin, begin+int(total), head, rec)
}

// room is how many bytes there are between off and the next beacon's place.
func (p *Parser) room(off int64) int64 {
	return int64(p.Interval) - off%int64(p.Interval)
}

// pass is the length of the beacon at the boundary off.
func (p *Parser) pass(b []byte, off int64) (int, error) {
	size, err := p.beaconLen(b)
	if err != nil {
		return 0, beaconDamage(err, off)
	}
	if left := remaining(b); left != 0 {
		return 0, &DamageError{
			Offset: off,
			Reason: fmt.Sprintf("a beacon says that %d bytes of a record follow where none was cut", left),
		}
	}
	return size, nil
}

// beaconLen is the length of a beacon that fits the interval.
func (p *Parser) beaconLen(b []byte) (int, error) {
	size, err := beaconLen(b)
	if err == nil && size >= int(p.Interval) {
		return 0, &BeaconError{Reason: fmt.Sprintf("%d bytes long in a file with one every %d bytes", size, p.Interval)}
	}
	return size, err
}

// beaconDamage is the error of a beacon at the offset given; a *ShortError
// stays what it is.
func beaconDamage(err error, off int64) error {
	if bad, ok := errors.AsType[*BeaconError](err); ok {
		return &DamageError{Offset: off, Reason: bad.Error()}
	}
	return err
}

// possible looks at what a record's head says.
func possible(rec *Record, payload, off int64) error {
	if !legal(rec.Key) {
		return badKey(rec.Key, off)
	}
	if payload > int64(MaxPayload) {
		return damage(rec, off, "a payload of %d bytes, at most %d are possible", payload, MaxPayload)
	}
	return nil
}

// finish looks at the payload and the end of a record. r is all of it, head the
// length of its head; end is where it ends in b.
func (p *Parser) finish(r, b []byte, off int64, begin, end, head int, rec *Record) (int, error) {
	tail := len(r) - tailLen
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
	return k > 0 && k <= MaxKey && legal(b[1:min(len(b), 1+k, int(p.room(off)))])
}

func badKey(key []byte, off int64) *DamageError {
	return &DamageError{Offset: off, Reason: "a record with the key " + quote(key)}
}

func damage(rec *Record, off int64, format string, args ...any) *DamageError {
	return &DamageError{Offset: off, Key: string(rec.Key), Sequence: rec.Sequence, Reason: fmt.Sprintf(format, args...)}
}
