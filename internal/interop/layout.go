// SPDX-License-Identifier: Apache-2.0

package interop

import "fmt"

// Lengths of the format beside keys and payloads.
const (
	headerLen = 128
	headLen   = 1 + 8 + 8 + 8 // of a record or marker
	bodyLen   = 4 + 2 + 1     // of a record
	markerLen = headLen + 2   // checksum
	beaconLen = 1 + 4 + 1 + 1 // without markers
	mostKey   = 255           // what a marker is reckoned with
	mostLen   = markerLen + mostKey
)

// Layout lays the records of a file out anew and returns the offset of each, and
// last of what is behind them. The error names the first beacon that does not
// stand where it must, or says something else than the records.
func (c Content) Layout() ([]int64, error) {
	l := layout{c: c, latest: map[string]Record{}, off: headerLen}
	offsets := []int64{headerLen}
	for _, r := range c.Records {
		if err := l.record(r); err != nil {
			return nil, err
		}
		offsets = append(offsets, l.off)
	}
	if l.next < len(c.Beacons) {
		return nil, fmt.Errorf("%d beacons, want %d", len(c.Beacons), l.next)
	}
	return offsets, nil
}

// layout is a place in a file.
type layout struct {
	c      Content
	latest map[string]Record
	off    int64
	next   int // index of the next beacon
}

// record lays one record out, with the beacons that cut it or end it.
func (l *layout) record(r Record) error {
	l.latest[r.Key] = r
	left := int64(headLen + len(r.Key) + bodyLen + len(r.Payload))
	for {
		room := int64(l.c.Header.Interval) - l.off%int64(l.c.Header.Interval)
		n := min(room, left)
		l.off += n
		left -= n
		if n < room {
			return nil
		}
		if l.next == len(l.c.Beacons) && left == 0 {
			return nil // due, not written yet
		}
		if err := l.beacon(uint32(left)); err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
	}
}

// beacon compares the next beacon with what was laid out.
func (l *layout) beacon(left uint32) error {
	if l.next == len(l.c.Beacons) {
		return fmt.Errorf("no beacon at offset %d", l.off)
	}
	b := l.c.Beacons[l.next]
	l.next++
	if at := int64(b.Number) * int64(l.c.Header.Interval); at != l.off || b.Remaining != left {
		return fmt.Errorf("beacon %d at %d says that %d bytes remain, want %d at %d", b.Number, at, b.Remaining, left, l.off)
	}
	l.off += beaconLen
	if most := min(255, (int(l.c.Header.Interval)-beaconLen)/mostLen) / 2; len(b.Markers) > most {
		return fmt.Errorf("beacon %d has %d markers, want at most %d", b.Number, len(b.Markers), most)
	}
	seen := map[string]bool{}
	for _, m := range b.Markers {
		l.off += int64(markerLen + len(m.Key))
		// The client's may be later: of a clock that went back, or of a new key in an old file.
		if r := l.latest[m.Key]; m.Sequence != r.Sequence || m.Time < r.Time || m.Shard != r.Shard || seen[m.Key] {
			return fmt.Errorf("beacon %d has the marker %+v, the latest record is %d of time %d", b.Number, m, r.Sequence, r.Time)
		}
		seen[m.Key] = true
	}
	return nil
}
