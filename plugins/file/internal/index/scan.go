// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// scan goes through the records of a file from a boundary on.
type scan struct {
	f   *file
	end int64 // behind the last whole record, and the beacon at its end

	// each is called with every whole record, also with one whose payload is
	// damaged, and stops the scan with false.
	each func(at int64, rec *format.Record) bool
	// passed is called with the beacons at which the scan went on after damage, once
	// a whole record stands behind them.
	passed func(format.Beacon)

	damage  *format.DamageError // passed over, with no whole record behind it yet
	before  int64               // end before that
	beacons []format.Beacon     // since
}

// run ends with what it met behind the last whole record: nil where nothing
// stands there, or the *format.ShortError or *format.DamageError.
func (s *scan) run(from int64) (met, err error) {
	if s.end, err = s.f.behindBeacon(from); err != nil {
		return nil, err
	}
	for met == nil && s.end < s.f.size {
		var rec format.Record
		end, err := s.f.next(s.end, &rec)
		if bad, ok := errors.AsType[*format.DamageError](err); ok && bad.Resume == 0 {
			if met, err = s.pass(bad); err != nil {
				return nil, err
			}
			continue
		} else if errors.As(err, new(*format.ShortError)) {
			met = err
			break
		} else if err != nil && !ok {
			return nil, err
		}
		s.reached()
		if !s.each(s.end, &rec) {
			return nil, nil
		}
		if s.end, err = s.f.behindBeacon(end); err != nil {
			return nil, err
		}
	}
	if s.damage != nil {
		s.end, met = s.before, s.damage
	}
	return met, nil
}

// pass goes on at the beacon behind damage, or gives the damage back where there
// is none.
func (s *scan) pass(bad *format.DamageError) (met, err error) {
	b, on, err := s.goOn(bad)
	if err != nil {
		return nil, err
	}
	if on == 0 {
		return bad, nil
	}
	if s.damage == nil {
		s.damage, s.before = bad, s.end
	}
	s.end, s.beacons = on, append(s.beacons, b)
	return nil, nil
}

// reached takes note of a whole record.
func (s *scan) reached() {
	for _, b := range s.beacons {
		if s.passed != nil {
			s.passed(b)
		}
	}
	s.damage, s.beacons = nil, s.beacons[:0]
}

// behindBeacon is the boundary off, or the one behind the whole beacon there.
func (f *file) behindBeacon(off int64) (int64, error) {
	if off%f.interval() != 0 {
		return off, nil
	}
	end := off
	err := f.parse(off, ahead, func(b []byte) error {
		size, left, err := f.parser.Beacon(b)
		if err == nil && left == 0 {
			end = off + int64(size)
		}
		return err
	})
	if err != nil && !unreadable(err) {
		return 0, err
	}
	return end, nil
}

// goOn finds the beacon behind damage at which a record begins, and the
// record. It is 0 where the file has none.
func (s *scan) goOn(bad *format.DamageError) (format.Beacon, int64, error) {
	for place := format.NextPlace(bad.Offset, s.f.parser.Interval); place < s.f.size; place += s.f.interval() {
		b, off, err := s.f.boundary(place)
		if err != nil {
			return b, 0, err
		}
		if off != 0 && off < s.f.size && off > s.end {
			off, err = s.f.behindBeacon(off)
			return b, off, err
		}
	}
	return format.Beacon{}, 0, nil
}

// boundary is the beacon at place and the offset at which a record ends that it
// cuts, or its own end. The offset is 0 where there is no beacon, or the record
// goes on behind the next beacon.
func (f *file) boundary(place int64) (b format.Beacon, off int64, err error) {
	b, end, ok, err := f.beacon(place)
	if err != nil || !ok {
		return b, 0, err
	}
	if off = end + int64(b.Remaining); off > place+f.interval() {
		return b, 0, nil
	}
	return b, off, nil
}
