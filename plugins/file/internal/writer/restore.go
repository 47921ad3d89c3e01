// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// sideEvery is how many bytes are written at the most before the side file is
// written again, so that no more heads than those are read after a crash. It is
// longer where there are so many keys that the side file would be a burden.
const sideEvery = 64 << 20

// restore fills the table: from the end of the file alone where that says all,
// else with the help of the side file, else from the heads of all records.
func (w *Writer) restore(ctx context.Context, active *reading, tail *index.Tail) error {
	if tail.Complete && len(w.rotated) == 0 {
		w.knowTail(tail, true)
		return nil
	}
	s, at := w.findSide(ctx, active)
	if s == nil {
		w.o.Logger.Info("no side file says what keys there are; the heads of all records are read", "path", w.path)
		at, s = 0, &side{offset: format.HeaderSize}
	}
	for _, k := range s.keys {
		w.table.know(k.name, k.sequence, k.time, k.last, k.here && at == len(w.rotated))
	}
	from := s.offset
	for _, r := range w.rotated[min(at, len(w.rotated)):] {
		if err := w.knowRotated(ctx, r, from); err != nil {
			return err
		}
		from = format.HeaderSize
	}
	if tail.Complete {
		w.knowTail(tail, true)
	} else if err := w.knowHeads(active, w.block.off, w.file.Header, from, tail, true); err != nil {
		return err
	}
	if s.created == w.file.Header.Created {
		w.sideNext = s.offset + sideEvery
	}
	return nil
}

// findSide returns the side file if it fits one of the files, and which.
func (w *Writer) findSide(ctx context.Context, active *reading) (*side, int) {
	s, err := readSide(w.path + sideSuffix)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.o.Logger.Warn("the side file cannot be used", "path", w.path+sideSuffix, "err", err)
		}
		return nil, 0
	}
	if s.created == w.file.Header.Created {
		if s.fits(active, w.block.off) {
			return s, len(w.rotated)
		}
		return nil, 0
	}
	for i, r := range slices.Backward(w.rotated) {
		f, err := segment.Open(r)
		if err != nil {
			continue
		}
		fits := false
		if fi, err := f.Stat(); err == nil && f.Header.Created == s.created {
			fits = s.fits(&reading{ctx: ctx, from: f, count: &w.read}, fi.Size())
		}
		_ = f.Close() // it was only read
		if fits {
			return s, i
		}
	}
	return nil, 0
}

// fits reports whether the bytes before the offset are still those that the
// side file was written for.
func (s *side) fits(f *reading, end int64) bool {
	if s.offset > end {
		return false
	}
	sum, err := digest(f, s.offset)
	return err == nil && sum == s.digest
}

// knowTail takes over what the end of a file says.
func (w *Writer) knowTail(tail *index.Tail, here bool) {
	for name, k := range tail.Keys {
		w.table.know(name, k.Sequence, k.Time, k.Checksum, here)
	}
}

// knowRotated takes over what a rotated file says. Damage in one is no reason
// not to write the next.
func (w *Writer) knowRotated(ctx context.Context, s segment.Segment, from int64) error {
	f, err := segment.Open(s)
	if w.passed(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	in := &reading{ctx: ctx, from: f, count: &w.read}
	tail, err := index.FindTail(in, fi.Size(), f.Header)
	if err != nil {
		return fmt.Errorf("read the end of %s: %w", s.Path, err)
	}
	if tail.Complete && tail.Damage == nil {
		w.knowTail(tail, false)
		return nil
	}
	return w.knowHeads(in, fi.Size(), f.Header, from, tail, false)
}

// knowHeads takes over what the heads of a file's records say, and what its last
// beacon says of records that damage hides from who reads the heads.
func (w *Writer) knowHeads(f *reading, end int64, h format.Header, from int64, last *index.Tail, here bool) error {
	if from < end {
		tail, err := index.ReadAll(f, end, h, from, nil)
		if err != nil {
			return fmt.Errorf("read the heads of %s: %w", w.path, err)
		}
		w.knowTail(tail, here)
	}
	for name, k := range last.Keys {
		if known := w.table.keys[name]; known == nil || known.sequence < k.Sequence {
			w.table.know(name, k.Sequence, k.Time, k.Checksum, here)
		}
	}
	return nil
}

// sideWanted reports whether beacons alone do not say what the keys are.
func (w *Writer) sideWanted() bool {
	if len(w.rotated) > 0 {
		return true
	}
	prime := w.table.keys[format.PrimeKey]
	listed := w.table.len() < w.block.slots && prime != nil && prime.here
	return !listed && w.block.off > int64(w.block.interval)
}

func (w *Writer) sideDue() bool {
	return w.block.off >= w.sideNext && w.sideWanted()
}

// keepSide writes the side file. Without it all is well but for the time that
// the next writer takes to open the file.
func (w *Writer) keepSide() {
	s := &side{created: w.file.Header.Created, offset: w.block.off, keys: w.table.list()}
	n, err := w.writeSide(s, w.file)
	w.sideWritten(n)
	if err != nil {
		w.o.Logger.Warn("the side file cannot be written", "path", w.path+sideSuffix, "err", err)
	}
}

// sideWritten says when a side file that was n bytes long is written again.
func (w *Writer) sideWritten(n int) {
	w.sideNext = w.block.off + max(sideEvery, 16*int64(n))
}

// writeSide puts the side file in its place and says how long it is.
func (w *Writer) writeSide(s *side, f *segment.File) (int, error) {
	var err error
	if s.digest, err = digest(f, s.offset); err != nil {
		return 0, err
	}
	b := s.encode()
	return len(b), replaceSide(w.path+sideSuffix, b, w.o.Sync != SyncNone)
}
