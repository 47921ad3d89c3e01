// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// due reports whether another file is to be begun before a record that would
// make this one end bytes long. A file without records is never left.
func (w *Writer) due(end int64, now time.Time) bool {
	if w.block.off+int64(len(w.block.bytes)) <= startLen {
		return false
	}
	if w.o.RotateBytes > 0 && end > w.o.RotateBytes || end > w.o.MaxBytes {
		return true
	}
	return w.o.RotateAge > 0 && now.Sub(time.UnixMilli(w.file.Header.Created)) >= w.o.RotateAge
}

// rotate begins another file. The block is empty.
func (w *Writer) rotate(now time.Time) error {
	if err := w.look(now); err != nil {
		return w.lasting(err)
	}
	if w.size > w.block.off { // an end mark is none in the middle of a stream
		if err := w.file.Truncate(w.block.off); err != nil {
			return w.failed(err)
		}
		w.size = w.block.off
	}
	if w.sync != nil {
		if err := w.sync.flush(); err != nil {
			return w.lasting(err)
		}
	}
	file, s, err := w.makeNext(now)
	if err != nil {
		return w.failed(err)
	}
	// From the side file on a crash is mended by going on, see mend.
	n, err := w.writeSide(s, file)
	if err == nil {
		err = w.changeNames(w.file.Number)
	}
	if err != nil {
		err = w.failed(errors.Join(err, file.Close(), removed(w.path+nextSuffix)))
		w.keepSide() // for the file that stays
		return err
	}
	w.turn(file, s, n)
	w.prune()
	if w.o.Sync != SyncNone {
		if err := syncFolder(w.path); err != nil {
			return w.lasting(&SyncError{Path: w.path, Err: err})
		}
	}
	return nil
}

// makeNext creates the next file, with the permissions of this one, and says
// what its side file holds.
func (w *Writer) makeNext(now time.Time) (*segment.File, *side, error) {
	h, err := w.header(now)
	if err != nil {
		return nil, nil, err
	}
	fi, err := w.file.Stat()
	if err != nil {
		return nil, nil, err
	}
	s := &side{
		created: h.Created, offset: startLen,
		before: w.file.Header.Created, beforeSize: w.size,
		keys: w.table.list(),
	}
	prime := key{name: format.PrimeKey}
	for i := range s.keys {
		s.keys[i].here = false
		if s.keys[i].name == prime.name {
			prime.sequence = s.keys[i].sequence
		}
	}
	prime.sequence, prime.time, prime.here = prime.sequence+1, now.UnixMilli(), true
	prime.last = format.Checksum([]byte(primePayload))
	s.keys = append(s.keys, prime) // the later one counts
	next := w.path + nextSuffix
	if _, left, err := w.leftNext(); err != nil {
		return nil, nil, err
	} else if left { // by a rotation that failed and could not remove it
		if err := w.dropNext(); err != nil {
			return nil, nil, err
		}
	}
	if err := writeNew(next, beginning(h, prime.sequence, prime.time), fi.Mode().Perm(), w.o.Sync != SyncNone); err != nil {
		return nil, nil, err
	}
	file, err := segment.OpenWritable(segment.Segment{Path: next, Active: true})
	if err != nil {
		return nil, nil, errors.Join(err, os.Remove(next))
	}
	return file, s, nil
}

// changeNames gives the active file the name of a rotated one and the next file
// the name of the active one: both, or neither.
func (w *Writer) changeNames(number uint64) error {
	if number > segment.MaxNumber {
		return &ExhaustedError{Path: w.path, What: "the number of its last rotated file"}
	}
	old := segment.Rotated(w.path, number)
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("rotate to %s: %w", old, fs.ErrExist), err)
	}
	if err := os.Rename(w.path, old); err != nil {
		return err
	}
	if err := os.Rename(w.path+nextSuffix, w.path); err != nil {
		return errors.Join(err, os.Rename(old, w.path))
	}
	return nil
}

// turn goes over to the next file.
func (w *Writer) turn(file *segment.File, s *side, sideLen int) {
	old := w.file
	w.rotated = append(w.rotated, segment.Segment{Number: old.Number, Path: segment.Rotated(w.path, old.Number)})
	file.Segment = segment.Segment{Number: old.Number + 1, Path: w.path, Active: true}
	w.file, w.fd, w.size = file, int(file.Fd()), s.offset
	w.block.interval, w.block.slots = file.Header.Interval, format.Slots(file.Header.Interval)
	w.table.leave()
	prime := s.keys[len(s.keys)-1]
	w.table.know(prime.name, prime.sequence, prime.time, prime.last, true)
	w.primed()
	w.block.off = s.offset
	w.begin()
	w.sideWritten(sideLen)
	if w.sync != nil {
		w.sync.turn(file)
	}
	w.o.Logger.Info("the file is rotated", "path", w.path, "to", w.rotated[len(w.rotated)-1].Path)
	if err := old.Close(); err != nil {
		w.o.Logger.Warn("a rotated file cannot be closed", "err", err)
	}
	if w.o.Written != nil {
		w.o.Written()
	}
}

// prune removes the oldest rotated files above the number that is kept.
func (w *Writer) prune() {
	for w.o.Keep > 0 && len(w.rotated) > w.o.Keep {
		if err := removed(w.rotated[0].Path); err != nil {
			w.o.Logger.Warn("an old file cannot be removed", "err", err)
			return
		}
		w.o.Logger.Info("an old file is removed", "path", w.rotated[0].Path)
		w.rotated = w.rotated[1:]
	}
}

// removed removes a file that may be gone already.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lasting keeps an error that is for good.
func (w *Writer) lasting(err error) error {
	var foreign *ForeignError
	var sync *SyncError
	if errors.As(err, &foreign) || errors.As(err, &sync) {
		w.stopped = err
	}
	return err
}
