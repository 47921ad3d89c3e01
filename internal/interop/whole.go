// SPDX-License-Identifier: Apache-2.0

package interop

import "encoding/binary"

// Whole returns the offsets of the whole records that a file begins with, and
// last the offset behind them. It looks at lengths alone.
func Whole(b []byte) []int64 {
	s := &scan{b: b, off: headerLen}
	if len(b) < headerLen {
		return nil
	}
	s.interval = int64(binary.BigEndian.Uint32(b[4+int(b[3])+8:]))
	offsets := []int64{headerLen}
	for s.record() {
		offsets = append(offsets, s.off)
	}
	return offsets
}

type scan struct {
	b        []byte
	off      int64
	interval int64
}

// record passes a record, and a beacon where it ends, if they are whole.
func (s *scan) record() bool {
	was := s.off
	key, ok := s.take(1)
	if ok {
		var body []byte
		body, ok = s.take(int64(key[0]) + 3*8 + 4)
		if ok {
			_, ok = s.take(int64(binary.BigEndian.Uint32(body[len(body)-4:])) + 2 + 1)
		}
	}
	if !ok {
		s.off = was
		return false
	}
	s.beacon() // it may be due and not written yet
	return true
}

// take passes n bytes of a record and the beacons in them.
func (s *scan) take(n int64) (got []byte, ok bool) {
	for n > 0 {
		if !s.beacon() {
			return nil, false
		}
		room := min(n, s.interval-s.off%s.interval)
		if s.off+room > int64(len(s.b)) {
			return nil, false
		}
		got = append(got, s.b[s.off:s.off+room]...)
		s.off += room
		n -= room
	}
	return got, true
}

// beacon passes the beacon that is due, if it is whole. Elsewhere there is none.
func (s *scan) beacon() bool {
	if s.off%s.interval != 0 {
		return true
	}
	at := s.off + beaconLen - 1 // of the first marker
	if at >= int64(len(s.b)) {
		return false
	}
	for range s.b[at-1] {
		if at >= int64(len(s.b)) {
			return false
		}
		at += markerLen + int64(s.b[at])
	}
	if at >= int64(len(s.b)) {
		return false
	}
	s.off = at + 1
	return true
}
