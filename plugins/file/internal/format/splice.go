// SPDX-License-Identifier: Apache-2.0

package format

// span is a part of a record, as positions in the bytes given.
type span struct{ from, to int }

// walk finds the parts of want bytes of a record that begins at begin, in
// p.spans, and where they end. total is the record's length, 0 while unknown:
// the beacons between must agree with it, those that b holds even where it does
// not hold all that is wanted.
func (p *Parser) walk(b []byte, off int64, begin, want, total int, rec *Record) (int, error) {
	p.spans = p.spans[:0]
	at, got := begin, 0
	for {
		part := int(min(int64(want-got), p.room(off+int64(at))))
		if at+part > len(b) {
			// A beacon cannot be larger than half of what it costs to meet it, so this
			// comes close to the truth in few calls.
			beacons := (want - got - part + int(p.Interval) - 1) / int(p.Interval)
			return 0, &ShortError{Need: at + want - got + beacons*beaconMin}
		}
		p.spans = append(p.spans, span{at, at + part})
		at += part
		if got += part; got == want {
			return at, nil
		}
		size, left, err := p.Beacon(b[at:])
		switch err := err.(type) { //nolint:errorlint // Beacon wraps nothing
		case nil:
		case *ShortError:
			return 0, &ShortError{Need: at + err.Need + want - got}
		default:
			return 0, damage(rec, off+int64(begin), "%v at offset %d, within the record", err, off+int64(at))
		}
		if total > 0 && int64(left) != int64(total-got) {
			return 0, damage(rec, off+int64(begin), "of its %d bytes %d stand behind the beacon at offset %d, which says %d",
				total, total-got, off+int64(at), left)
		}
		at += size
	}
}

// splice puts the parts that walk found together in p.Spill.
func (p *Parser) splice(b []byte, total int) []byte {
	if cap(p.Spill)-len(p.Spill) < total {
		p.Spill = make([]byte, 0, max(total, leastSpill))
	}
	begin := len(p.Spill)
	for _, s := range p.spans {
		p.Spill = append(p.Spill, b[s.from:s.to]...)
	}
	return p.Spill[begin:len(p.Spill):len(p.Spill)]
}

// leastSpill is the least that Spill is replaced by: small records cut by
// beacons share it.
const leastSpill = 4 << 10
