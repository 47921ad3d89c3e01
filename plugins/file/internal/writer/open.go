// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// startLen is how long a file is that holds nothing but the priming record.
const startLen = format.HeaderSize + format.RecordOverhead + int64(len(format.PrimeKey)+len(primePayload))

// primePayload is what the priming record says.
const primePayload = "1"

// Open locks the path and makes it ready: a missing file is created, what a
// crash has left behind is mended. A file that is not understood is left as it
// is.
//
// The error is a *segment.LockedError, a *segment.KindError, a *TornError, a
// *DamagedError, fs.ErrNotExist where Options.Existing asks for a file, or
// another one of the system.
func Open(ctx context.Context, path string, o Options) (*Writer, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	resolved, err := segment.Resolve(path)
	if err != nil {
		return nil, err
	}
	lock, err := segment.AcquireLock(resolved, o.Owner)
	if err != nil {
		return nil, err
	}
	w := &Writer{o: o, path: resolved, lock: lock, table: newTable()}
	if err := w.open(ctx); err != nil {
		if w.file != nil {
			err = errors.Join(err, w.file.Close())
		}
		return nil, errors.Join(err, lock.Unlock())
	}
	switch o.Sync {
	case SyncEach:
		w.sync = newSyncer(w.path, w.file, 0)
	case SyncInterval:
		w.sync = newSyncer(w.path, w.file, o.SyncEvery)
	}
	return w, nil
}

func (w *Writer) open(ctx context.Context) error {
	if err := w.mend(); err != nil {
		return err
	}
	list, err := segment.List(w.path)
	if err != nil {
		return err
	}
	active := segment.Segment{Number: 1, Path: w.path, Active: true}
	if n := len(list); n > 0 && list[n-1].Active {
		active, list = list[n-1], list[:n-1]
	} else if n > 0 {
		active.Number = list[n-1].Number + 1
	}
	w.rotated = list
	w.file, err = w.openActive(active)
	if err != nil {
		return err
	}
	w.fd = int(w.file.Fd())
	if w.o.Sync != SyncNone { // a confirmed record is worth no more than the name of its file
		if err := syncFolder(w.path); err != nil {
			return &SyncError{Path: w.path, Err: err}
		}
	}
	w.block.interval, w.block.slots = w.file.Header.Interval, format.Slots(w.file.Header.Interval)
	return w.take(ctx)
}

// openActive opens the file that is written, or creates it.
func (w *Writer) openActive(s segment.Segment) (*segment.File, error) {
	f, err := segment.OpenWritable(s)
	var kind *segment.KindError
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist) && !w.o.Existing:
	case errors.As(err, &kind) && kind.Short && isEmpty(s.Path):
	default:
		return nil, err
	}
	h, err := w.header(w.o.Now())
	if err != nil {
		return nil, err
	}
	if kind != nil {
		err = w.fill(h)
	} else {
		err = w.create(h)
	}
	if err != nil {
		return nil, err
	}
	w.fresh = true
	w.o.Logger.Info("the file is created", "path", w.path)
	return segment.OpenWritable(s)
}

func isEmpty(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Size() == 0
}

// header is that of a new file: created later than all before it.
func (w *Writer) header(now time.Time) (format.Header, error) {
	h := format.Header{Name: filepath.Base(w.path), Created: now.UnixMilli(), Interval: w.o.Interval}
	before, known := int64(0), w.file != nil
	if known {
		before = w.file.Header.Created
	}
	for i := len(w.rotated) - 1; i >= 0 && !known; i-- {
		f, err := segment.Open(w.rotated[i])
		if w.passed(err) {
			continue
		}
		if err != nil {
			return h, err
		}
		before, known = f.Header.Created, true
		if err := f.Close(); err != nil {
			return h, err
		}
	}
	if !known {
		return h, nil
	}
	if before == math.MaxInt64 {
		return h, &ExhaustedError{Path: w.path, What: "the time of creation in its header"}
	}
	h.Created = max(h.Created, before+1)
	return h, nil
}

// passed reports whether a rotated file is none that can be read. Writing goes
// on without it.
func (w *Writer) passed(err error) bool {
	if !errors.As(err, new(*segment.KindError)) {
		return false
	}
	w.o.Logger.Warn("a rotated file cannot be read and is passed", "err", err)
	return true
}

// take finds out where the next record goes and what the keys are.
func (w *Writer) take(ctx context.Context) error {
	fi, err := w.file.Stat()
	if err != nil {
		return fmt.Errorf("open %s: %w", w.path, err)
	}
	w.size = fi.Size()
	in := &reading{ctx: ctx, from: w.file, count: &w.read}
	tail, err := index.FindTail(in, w.size, w.file.Header)
	if err != nil {
		return fmt.Errorf("read the end of %s: %w", w.path, err)
	}
	if tail.Damage != nil {
		return &DamagedError{Path: w.path, Err: tail.Damage}
	}
	w.block.off = tail.End
	whole := tail.End
	if tail.Mark >= 0 {
		whole = w.size - tail.Torn // the mark stays until there is a next record
	}
	if tail.Torn > 0 && w.o.RefuseTorn {
		return &TornError{Path: w.path, Offset: whole, Bytes: w.size - whole}
	}
	if err := w.restore(ctx, in, tail); err != nil {
		return err
	}
	if tail.Torn > 0 {
		w.o.Logger.Warn("the file ends within a record; the torn bytes are cut off",
			"path", w.path, "offset", whole, "bytes", w.size-whole)
		if err := w.file.Truncate(whole); err != nil {
			return fmt.Errorf("cut the torn end off %s at offset %d: %w", w.path, whole, err)
		}
		w.size = whole
	}
	if w.fresh {
		w.primed()
	}
	return w.start()
}

// primed begins the running checksum of a file that this writer has created.
func (w *Writer) primed() {
	if k := w.table.keys[format.PrimeKey]; k != nil {
		k.running = format.Running(format.NoChecksum, k.last)
	}
}

// start writes what must stand before the first record: the priming record, and
// a beacon where the file ends at the place of one.
func (w *Writer) start() error {
	place := w.block.off == format.HeaderSize || w.block.off%int64(w.block.interval) == 0
	if !place || w.size > w.block.off {
		return nil
	}
	now := w.o.Now()
	w.begin()
	if w.block.off == format.HeaderSize {
		w.block.record(w.table, format.PrimeKey, nil, []byte(primePayload), len(primePayload), false, now.UnixMilli())
	} else {
		w.block.bytes = format.AppendBeacon(w.block.bytes, format.Beacon{Markers: w.table.beacon(w.block.slots)})
	}
	n, err := w.write(now)
	w.block.off += int64(n)
	return err
}

// reading counts what is read, and ends with its context.
type reading struct {
	ctx   context.Context //nolint:containedctx // a ReaderAt takes none
	from  io.ReaderAt
	count *int64
}

func (r *reading) ReadAt(b []byte, off int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.from.ReadAt(b, off)
	*r.count += int64(n)
	return n, err
}
