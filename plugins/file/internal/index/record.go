// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// errLarge ends the parsing of a record that is not to be read whole.
var errLarge = errors.New("large record")

// next reads the record that begins at off and says where it ends. Of a large
// one the payload is not read. A *format.ShortError says that the record is
// possible and reaches beyond the end of the file; of damage that tells where to
// go on, the end is that.
func (f *file) next(off int64, rec *format.Record) (end int64, err error) {
	f.parser.Spill = f.parser.Spill[:0]
	err = f.parse(off, ahead, func(b []byte) error {
		n, err := f.parser.Next(b, off, rec)
		if short, ok := errors.AsType[*format.ShortError](err); ok && short.Need > max(large, len(b)) {
			return errLarge
		}
		if bad, ok := errors.AsType[*format.DamageError](err); ok {
			n = bad.Resume
		}
		end = off + int64(n)
		return err
	})
	if errors.Is(err, errLarge) {
		end, _, err = f.skim(off, rec)
	}
	return end, err
}

// skim reads the head of the record that begins at off, the beacons that cut it
// and its end, and says how many of the beacons agreed. Errors are as those of
// next.
func (f *file) skim(off int64, rec *format.Record) (end int64, agreed int, err error) {
	var payload int
	err = f.parse(off, probe, func(b []byte) (err error) {
		_, payload, err = f.parser.Head(b, off, rec)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	rec.Key = append([]byte(nil), rec.Key...)
	s := skimmer{f: f, rec: rec, begin: off, at: off, left: int64(format.RecordLen(rec.Key, payload))}
	var last [format.TailLen]byte
	err = s.advance(s.left-int64(len(last)), nil)
	for i := 0; err == nil && i < len(last); i++ {
		err = s.advance(1, last[i:])
	}
	if err != nil {
		return 0, s.agreed, err
	}
	var ok bool
	if rec.Checksum, ok = format.ParseTail(last[:]); !ok {
		return 0, s.agreed, s.damaged(fmt.Sprintf("it closes with %02x", last[len(last)-1]))
	}
	return s.at, s.agreed, nil
}

// skimmer goes through a record from beacon to beacon.
type skimmer struct {
	f      *file
	rec    *format.Record
	begin  int64
	at     int64 // where in the file it is
	left   int64 // bytes of the record to come
	agreed int   // beacons that say the same
}

func (s *skimmer) damaged(reason string) error {
	return &format.DamageError{Offset: s.begin, Key: string(s.rec.Key), Sequence: s.rec.Sequence, Reason: reason}
}

// advance goes n bytes of the record on, over the beacons before them. The byte
// it comes to at last is put into dst.
func (s *skimmer) advance(n int64, dst []byte) error {
	for n > 0 {
		if s.at%s.f.interval() == 0 && s.at > s.begin {
			if err := s.beacon(); err != nil {
				return err
			}
		}
		part := min(n, s.f.interval()-s.at%s.f.interval())
		if s.at+part > s.f.size {
			return &format.ShortError{Need: int(s.at + s.left - s.begin)}
		}
		s.at, s.left, n = s.at+part, s.left-part, n-part
	}
	if len(dst) == 0 {
		return nil
	}
	b, err := s.f.bytes(s.at-1, 1, probe)
	if err == nil {
		dst[0] = b[0]
	}
	return err
}

// beacon passes the beacon where the skimmer is.
func (s *skimmer) beacon() error {
	return s.f.parse(s.at, probe, func(b []byte) error {
		size, left, err := s.f.parser.Beacon(b)
		if bad, ok := errors.AsType[*format.BeaconError](err); ok {
			return s.damaged(fmt.Sprintf("%v at offset %d, within the record", bad, s.at))
		}
		if err != nil {
			return err
		}
		if int64(left) != s.left {
			return s.damaged(fmt.Sprintf("%d bytes of it stand behind the beacon at offset %d, which says %d", s.left, s.at, left))
		}
		s.at += int64(size)
		s.agreed++
		return nil
	})
}
