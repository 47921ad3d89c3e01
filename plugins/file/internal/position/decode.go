// SPDX-License-Identifier: Apache-2.0

package position

import (
	"encoding/binary"
	"fmt"
	"math"
)

// slot is a slot as it was found.
type slot struct {
	counter uint64
	end     int    // behind the last change,
	sum     uint32 // whose checksum this is
	state   state
}

// decodeSlot reads a slot. It returns nil where none is, or where it is torn, and
// an error where its checksums fit and it makes no sense.
func decodeSlot(b []byte) (*slot, error) {
	if len(b) < slotHead || [4]byte(b) != slotMagic {
		return nil, nil
	}
	n := binary.BigEndian.Uint32(b[12:])
	if uint64(n) > uint64(len(b)-slotHead) {
		return nil, nil
	}
	s := &slot{counter: binary.BigEndian.Uint64(b[4:]), end: slotHead + int(n), sum: binary.BigEndian.Uint32(b[16:])}
	if slotSum(b[:s.end]) != s.sum {
		return nil, nil
	}
	d := decoder{rest: b[slotHead:s.end]}
	d.state()
	for d.reason == "" {
		body := s.change(b)
		if body == nil {
			break
		}
		d.rest = body
		d.change()
	}
	if d.reason != "" {
		return nil, fmt.Errorf("slot %d, before offset %d: %s", s.counter, s.end, d.reason)
	}
	s.state = d.result()
	return s, nil
}

// change goes on behind the next change and returns it, nil if there is no whole
// one.
func (s *slot) change(b []byte) []byte {
	if len(b)-s.end < changeHead+1 {
		return nil
	}
	n := binary.BigEndian.Uint32(b[s.end:])
	if n == 0 || uint64(n) > uint64(len(b)-s.end-changeHead) {
		return nil
	}
	body := b[s.end+changeHead:][:n]
	sum := binary.BigEndian.Uint32(b[s.end+4:])
	if changeSum(body, s.sum) != sum {
		return nil
	}
	s.sum, s.end = sum, s.end+changeHead+int(n)
	return body
}

// decoder carries out what a slot says.
type decoder struct {
	rest    []byte
	reason  string // why it cannot be understood
	to      state
	settled []bool // of to.unsettled
	live    int
	from    Place // the last entry
}

func (d *decoder) fail(reason string) {
	if d.reason == "" {
		d.reason = reason
	}
	d.rest = nil
}

func (d *decoder) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > limit {
		d.fail("a number is cut short or too large")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("a number is cut short")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) distance(from Place) Place {
	return Place{Created: from.Created + d.int(), Offset: from.Offset + d.int()}
}

func (d *decoder) state() {
	d.to.next = d.distance(Place{})
	if d.to.hasLast = d.uint(1) == 1; d.to.hasLast {
		d.to.last.Place = d.distance(Place{})
		d.to.last.Sequence = d.uint(math.MaxUint64)
		d.to.last.Time = d.int()
	}
	d.from = d.to.next
	d.entries()
	d.end()
}

func (d *decoder) end() {
	if len(d.rest) > 0 {
		d.fail("there is more than there should be")
	}
}

// entries reads a list of unsettled records.
func (d *decoder) entries() {
	n := d.uint(MaxUnsettled)
	if d.live += int(n); d.live > MaxUnsettled {
		d.fail("there are too many unsettled records")
	}
	for ; n > 0 && d.reason == ""; n-- {
		head := d.uint(math.MaxUint32<<1 | 1)
		p := d.from
		if head&1 != 0 {
			p.Created += d.int()
		}
		p.Offset += d.int()
		d.from = p
		d.to.unsettled = append(d.to.unsettled, saved{place: p, count: uint32(head >> 1)})
		d.settled = append(d.settled, false)
	}
}

func (d *decoder) change() {
	kind := d.rest[0]
	d.rest = d.rest[1:]
	switch kind {
	case changeDeliver:
		d.deliver()
	case changeAgain:
		d.runs(func(i uint64) { d.to.unsettled[i].count = more(d.to.unsettled[i].count) })
	case changeSettled:
		d.runs(func(i uint64) { d.settled[i] = true; d.live-- })
	case changeMoved:
		d.to.next = d.distance(d.from)
	default:
		d.fail(fmt.Sprintf("a change of the unknown kind %d", kind))
	}
	d.end()
}

func (d *decoder) deliver() {
	before := len(d.to.unsettled)
	d.entries()
	if len(d.to.unsettled) == before {
		d.fail("a deliver of nothing")
	}
	d.to.hasLast = true
	d.to.last = Mark{Place: d.from, Sequence: d.uint(math.MaxUint64), Time: d.int()}
	d.to.next = d.distance(d.from)
}

// runs calls each for the numbers of unsettled records.
func (d *decoder) runs(each func(i uint64)) {
	at, all := uint64(0), uint64(len(d.to.unsettled))
	for n := d.uint(all); n > 0 && d.reason == ""; n-- {
		at += d.uint(all)
		for k := d.uint(all); k > 0 && d.reason == ""; k-- {
			if at >= all || d.settled[at] {
				d.fail("a number of no unsettled record")
				return
			}
			each(at)
			at++
		}
	}
}

// result returns the state without what is settled.
func (d *decoder) result() state {
	live := d.to.unsettled[:0]
	for i, u := range d.to.unsettled {
		if !d.settled[i] {
			live = append(live, u)
		}
	}
	d.to.unsettled = live
	return d.to
}

// more counts one more.
func more(count uint32) uint32 {
	if count == math.MaxUint32 {
		return count
	}
	return count + 1
}
