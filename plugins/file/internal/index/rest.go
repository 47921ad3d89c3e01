// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

const (
	// longestRest is more than a beacon and an end mark can be.
	longestRest = 1 << 17
	// markTell is how much of an end mark's end is its own: payload, checksum and
	// closing byte.
	markTell = len(format.EndPayload) + format.TailLen
)

// rest reports whether what stands from begin on to the end of the file is what
// a writer left that does not cut off what it writes over. The reference writes
// the next records over an end mark, and over a beacon within or before it,
// anew and with fewer markers than the old one. Less than a record is taken for
// such a rest, too.
func (f *file) rest(begin int64) (bool, error) {
	if f.size-begin > longestRest {
		return false, nil
	}
	region, err := f.bytes(begin, longestRest, ahead)
	if err != nil {
		return false, err
	}
	region = region[:min(int64(len(region)), f.size-begin)]
	if len(region) < format.RecordOverhead || format.EndRest(region) || f.cutRest(region, begin) {
		return true, nil
	}
	region = slices.Clone(region)
	place := begin / f.interval() * f.interval()
	if place == 0 || f.size-place > f.interval() {
		return false, nil
	}
	for n := 0; n <= min(len(region), format.EndLen); n++ {
		beacon, mark := region[:len(region)-n], region[len(region)-n:]
		if n > 0 && !format.EndRest(mark) && !whole(mark) {
			continue
		}
		if markers, ok := format.BeaconRest(beacon); ok && (markers > 0 || n >= markTell) {
			return true, nil
		}
	}
	b, _, ok, err := f.beacon(place)
	if !ok || len(b.Markers) > 0 || b.Remaining > 0 {
		return false, err
	}
	_, ok = format.BeaconRest(region)
	return ok, nil
}

// cutRest is EndRest for a mark with a whole beacon in it or behind it.
func (f *file) cutRest(region []byte, begin int64) bool {
	place := int(format.NextPlace(begin, f.parser.Interval) - begin)
	if place >= min(len(region), format.EndLen) {
		return false
	}
	size, left, err := f.parser.Beacon(region[place:])
	return err == nil && int64(left) == int64(len(region)-place-size) &&
		format.EndRest(slices.Concat(region[:place], region[place+size:]))
}

// whole reports whether b is an end mark.
func whole(b []byte) bool {
	p := format.Parser{Interval: format.DefaultInterval}
	var rec format.Record
	n, err := p.Next(b, format.HeaderSize, &rec)
	return err == nil && n == len(b) && rec.IsEnd()
}
