// SPDX-License-Identifier: Apache-2.0

package index

import (
	"io"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// Found is where a search ended.
type Found struct {
	// Offset is where the record begins. Where there is none it is the end of the
	// last whole record.
	Offset int64
	OK     bool // there is one
	// Sequence is that of the record.
	Sequence uint64
	// Last is the key's last sequence where there is no record, 0 if it has none at
	// all. Searches by time leave it 0.
	Last uint64
}

// Sequence finds the first record of key whose sequence is seq or higher, by
// bisection over the beacons that name the key. Where beacons do not, because
// more keys than fit take turns or the writer forgot those of an earlier run,
// their neighbours are asked; where none does, the heads of records are read.
func Sequence(from io.ReaderAt, size int64, h format.Header, key string, seq uint64) (Found, error) {
	f := open(from, size, h)
	var last uint64
	start, err := f.bisect(func(place int64) (before, ok bool, err error) {
		b, _, ok, err := f.beacon(place)
		if err != nil || !ok {
			return false, false, err
		}
		// The highest of the key's shards, as in FindTail.
		var highest uint64
		named := false
		for _, m := range b.Markers {
			if m.Key == key {
				highest, named = max(highest, m.Sequence), true
			}
		}
		if named && highest < seq {
			last = max(last, highest)
		}
		return highest < seq, named, nil
	})
	if err != nil {
		return Found{}, err
	}
	found, err := f.first(start, func(rec *format.Record) bool {
		if string(rec.Key) != key {
			return false
		}
		last = max(last, rec.Sequence)
		return rec.Sequence >= seq
	})
	if !found.OK {
		found.Last = last
	}
	return found, err
}

// Time finds the first record that is later than ms (milliseconds since the
// epoch) and whose key match accepts (nil: any), by bisection over the first
// records behind beacons. Records are taken to be in the order of their times.
// Where the writer's clock went back, the search may end at any record that is
// later and follows one that is not, or at the first of all.
func Time(from io.ReaderAt, size int64, h format.Header, match func(key []byte) bool, ms int64) (Found, error) {
	f := open(from, size, h)
	start, err := f.bisect(func(place int64) (before, ok bool, err error) {
		_, off, err := f.boundary(place)
		if err != nil || off == 0 || off >= f.size {
			return false, false, err
		}
		var rec format.Record
		err = f.parse(off, probe, func(b []byte) error {
			_, _, err := f.parser.Head(b, off, &rec)
			return err
		})
		if unreadable(err) {
			return false, false, nil
		}
		return rec.Time <= ms, err == nil, err
	})
	if err != nil {
		return Found{}, err
	}
	return f.first(start, func(rec *format.Record) bool {
		return rec.Time > ms && (match == nil || match(rec.Key))
	})
}

// bisect finds a boundary before which no record is that is searched for. ask
// says whether all records before a beacon come before what is searched for, and
// false at last where the beacon does not tell.
func (f *file) bisect(ask func(place int64) (before, ok bool, err error)) (int64, error) {
	low, high := int64(0), max(0, f.size-1)/f.interval()+1 // numbers of beacons; 0 is the header
	for high-low > 1 {
		middle := low + (high-low)/2
		at := middle
		for ; at < high; at++ {
			before, ok, err := ask(at * f.interval())
			if err != nil {
				return 0, err
			}
			if ok && before {
				low = at
			}
			if ok {
				break
			}
		}
		if low < middle {
			high = middle // no beacon from there on is known to come before it
		}
	}
	for ; low > 0; low-- {
		_, off, err := f.boundary(low * f.interval())
		if err != nil {
			return 0, err
		}
		if off != 0 && off <= f.size {
			return off, nil
		}
	}
	return format.HeaderSize, nil
}

// first finds the first record from start on that want accepts.
func (f *file) first(start int64, want func(rec *format.Record) bool) (Found, error) {
	var found Found
	s := scan{f: f}
	s.each = func(at int64, rec *format.Record) bool {
		if want(rec) {
			found = Found{Offset: at, OK: true, Sequence: rec.Sequence}
		}
		return !found.OK
	}
	if _, err := s.run(start); err != nil {
		return Found{}, err
	}
	if !found.OK {
		found.Offset = s.end
	}
	return found, nil
}
