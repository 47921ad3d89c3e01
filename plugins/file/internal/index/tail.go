// SPDX-License-Identifier: Apache-2.0

package index

import (
	"io"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// KeyState is what is known of the latest record of a key.
type KeyState struct {
	Sequence uint64
	Time     int64 // ms since the epoch
	// Checksum is the record's own where the record was read, and the key's running
	// checksum where only a beacon spoke of it.
	Checksum uint16
}

// Tail is the end of a file.
type Tail struct {
	// End is where the next record is written: behind the last whole record, and
	// behind the beacon at its end where that is whole. An end mark that is the last
	// whole record is not counted in.
	End int64
	// Mark is the offset of that end mark, or -1.
	Mark int64
	// Torn is how many bytes behind the last whole record, or behind the end mark,
	// are the beginning of a record or beacon, zeros, or the rest of an end mark that
	// a record was written over.
	Torn int64
	// Damage says why what stands behind the last whole record is not understood.
	// Nothing must be written to the file then.
	Damage *format.DamageError
	// Keys has the latest record of each key as far as known. The end mark is none.
	Keys map[string]KeyState
	// Complete is whether Keys has all keys of the file.
	Complete bool
	// Read is how many bytes were read to find this out.
	Read int64
}

// FindTail finds the end of a file of size bytes with the header given. It reads
// from the last good beacon on. Keys are those of that beacon and of the records
// behind it. They are all there are where it has room for more and names the
// priming record: writers that forget what an earlier run wrote never name it
// again.
func FindTail(from io.ReaderAt, size int64, h format.Header) (*Tail, error) {
	f := open(from, size, h)
	start, place, b, err := f.lastBoundary(size)
	if err != nil {
		return nil, err
	}
	t := newTail()
	t.Complete = start == format.HeaderSize ||
		t.noteAll(b.Markers) && len(b.Markers) < format.Slots(h.Interval)
	whole, err := t.find(f, start, nil)
	if err == nil && whole == 0 && place > 0 && t.Damage == nil {
		err = t.lookBack(f, place)
	}
	return t, err
}

// lookBack reads what stands before the beacon at place, where no whole record
// stands behind it: the last one may be an end mark.
func (t *Tail) lookBack(f *file, place int64) error {
	start, _, _, err := f.lastBoundary(place)
	if err != nil {
		return err
	}
	before := newTail()
	_, err = before.find(f, start, nil)
	t.Read = before.Read
	if err != nil || before.Damage != nil {
		return err
	}
	for k, s := range before.Keys {
		t.note(k, s)
	}
	t.End, t.Mark, t.Torn = before.End, before.Mark, before.Torn
	return nil
}

// ReadAll finds the end of a file reading every head from the boundary start on
// (format.HeaderSize: from the beginning, then Keys is complete). Payloads are
// not read where they are large. Records that damage hides are passed over; what
// the next beacon says of their keys is taken in. each may be nil; its record is
// good until it returns.
func ReadAll(from io.ReaderAt, size int64, h format.Header, start int64, each func(at int64, rec *format.Record)) (*Tail, error) {
	f := open(from, size, h)
	t := newTail()
	t.Complete = start == format.HeaderSize
	_, err := t.find(f, start, each)
	return t, err
}

func newTail() *Tail { return &Tail{Mark: -1, Keys: map[string]KeyState{}} }

// note takes in what a record or a beacon says of a key. The highest sequence
// counts, also over shards: sequences are to go on rising.
func (t *Tail) note(key string, s KeyState) {
	if key == format.EndKey {
		return
	}
	if known, ok := t.Keys[key]; !ok || s.Sequence >= known.Sequence {
		t.Keys[key] = s
	}
}

// noteAll takes in what a beacon says and reports whether it names the priming
// record.
func (t *Tail) noteAll(markers []format.Marker) (primed bool) {
	for _, m := range markers {
		t.note(m.Key, KeyState{Sequence: m.Sequence, Time: m.Time, Checksum: m.Checksum})
		primed = primed || m.Key == format.PrimeKey
	}
	return primed
}

// find scans from start to the end of the file and says how many whole records
// it met.
func (t *Tail) find(f *file, start int64, each func(at int64, rec *format.Record)) (whole int, err error) {
	s := scan{f: f}
	s.each = func(at int64, rec *format.Record) bool {
		whole++
		t.Mark = -1
		if rec.IsEnd() {
			t.Mark = at
		}
		t.note(string(rec.Key), KeyState{Sequence: rec.Sequence, Time: rec.Time, Checksum: rec.Checksum})
		if each != nil {
			each(at, rec)
		}
		return true
	}
	s.passed = func(b format.Beacon) {
		t.Mark = -1
		t.noteAll(b.Markers)
	}
	met, err := s.run(start)
	if err != nil {
		return whole, err
	}
	t.End = s.end
	if met != nil {
		if t.Damage, err = f.judge(s.end, met); err != nil {
			return whole, err
		}
	}
	if t.Damage == nil {
		t.Torn = f.size - s.end
	}
	if t.Mark >= 0 {
		t.End = t.Mark
	}
	t.Read = f.read
	return whole, nil
}

// lastBoundary is the last offset that a good beacon before the offset before
// says is the boundary of a record, with the beacon and its place. A record that
// it cuts must close there. Where there is none it is the end of the header, and
// the place is 0.
func (f *file) lastBoundary(before int64) (off, place int64, b format.Beacon, err error) {
	for place = (before - 1) / f.interval() * f.interval(); place > 0; place -= f.interval() {
		if place < f.at && f.interval() < ahead { // those before it are close, too
			from := max(0, place+f.interval()-ahead)
			if _, err := f.bytes(from, int(place+f.interval()-from), 0); err != nil {
				return 0, 0, b, err
			}
		}
		if b, off, err = f.boundary(place); err != nil {
			return 0, 0, b, err
		}
		if off == 0 || off > f.size {
			continue
		}
		if b.Remaining > 0 {
			last, err := f.bytes(off-1, 1, probe)
			if err != nil {
				return 0, 0, b, err
			}
			if !format.Closes(last[0]) {
				continue
			}
		}
		return off, place, b, nil
	}
	return format.HeaderSize, 0, format.Beacon{}, nil
}
