// SPDX-License-Identifier: Apache-2.0

// Package writer appends records to the stream file at a path. It is the path's
// one writer, by a lock that other processes respect, and what it has confirmed
// can be read: a batch is in the file whole or, where writing failed, not at
// all.
//
// A Writer goes through Open, any number of Append, and Close.
//
// # Caveats
//
// What a confirmed record survives depends on Options.Sync. Foreign programs
// that write the file in spite of the lock are noticed when they have changed
// its length, at the next batch.
package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

const (
	// maxBlock is how many bytes go into one write, one record more.
	maxBlock = 8 << 20
	// maxKept is the longest buffer that is kept for the next batch.
	maxKept = maxBlock
	// lookEvery is how often it is checked that the file still stands at its
	// path. Its length is looked at before each write.
	lookEvery = time.Second
)

// Entry is a message to be written. It is the caller's again when Append has
// returned.
type Entry struct {
	Key     string
	Headers core.Headers
	Payload []byte
}

// Done takes the outcome of entry i of a batch: the sequence of its record, or
// why there is none. It is called once for each entry, from the goroutine of
// Append or from the one that syncs, and must not call the writer.
type Done = func(i int, sequence uint64, err error)

// Writer appends to one path. Append and Close are called by one goroutine at a
// time.
type Writer struct {
	o    Options
	path string // resolved
	lock *segment.Lock
	sync *syncer // nil without syncing before Close

	file    *segment.File
	size    int64 // of the file, as this writer left it
	fd      int
	rotated []segment.Segment
	looked  time.Time // when the path was last compared with the file
	stopped error     // why nothing is written any more

	table    *table
	sideNext int64 // the length of the file at which the side file is written again
	block    block // its off is where the next record goes: below size while an end mark stands there
	wrote    []record
	read     int64 // bytes read by Open
	fresh    bool  // Open has created the file
}

// record is one of the block.
type record struct {
	index    int
	sequence uint64
}

// Append writes a batch in one write, or several where it is long or the file is
// rotated within it. Entries that cannot become records are refused one by one.
// Where nothing could be written for now, the next batch is tried again.
func (w *Writer) Append(entries []Entry, done Done) {
	now := w.o.Now()
	w.begin()
	if w.stopped == nil && w.sync != nil {
		w.stopped = w.sync.failed()
	}
	for i := range entries {
		e := &entries[i]
		if w.stopped != nil {
			done(i, 0, w.stopped)
			continue
		}
		size, wrapped, err := measure(e)
		if err == nil {
			err = w.makeRoom(e, size, now, done)
		}
		if err != nil {
			done(i, 0, err)
			continue
		}
		sequence := w.block.record(w.table, e.Key, e.Headers, e.Payload, size, wrapped, now.UnixMilli())
		w.wrote = append(w.wrote, record{index: i, sequence: sequence})
		if len(w.block.bytes) >= maxBlock {
			w.flush(now, done)
		}
	}
	w.flush(now, done)
}

func (w *Writer) begin() {
	w.table.begin()
	w.wrote = w.wrote[:0]
	w.block.reset(w.block.off)
}

// measure says how long an entry's payload is within the record and whether it
// is wrapped in an envelope.
func measure(e *Entry) (size int, wrapped bool, err error) {
	switch {
	case !format.ValidKey(e.Key):
		return 0, false, &KeyError{Key: e.Key, Reason: fmt.Sprintf("a stream key is 1 to %d letters, digits, '.', '_' and '-'", format.MaxKey)}
	case e.Key == format.EndKey || e.Key == format.PrimeKey:
		return 0, false, &KeyError{Key: e.Key, Reason: "the format uses it itself"}
	}
	size = len(e.Payload)
	if wrapped = envelope.Needed(e.Headers, e.Payload); wrapped {
		size = envelope.Len(e.Headers, e.Payload)
	}
	if size > format.MaxPayload {
		return 0, false, &SizeError{Key: e.Key, Size: size, Limit: format.MaxPayload}
	}
	return size, wrapped, nil
}

// makeRoom sees to it that the file may take the entry, if need be by beginning
// another file.
func (w *Writer) makeRoom(e *Entry, size int, now time.Time, done Done) error {
	need := w.block.most(w.table, e.Key, format.RecordLen(e.Key, size))
	end := w.block.off + int64(len(w.block.bytes)) + need
	if w.o.rotates() && w.due(end, now) {
		w.flush(now, done)
		if w.stopped != nil {
			return w.stopped
		}
		if err := w.rotate(now); err != nil {
			return err
		}
		need = w.block.most(w.table, e.Key, format.RecordLen(e.Key, size))
		end = w.block.off + need
	}
	if end <= w.o.MaxBytes {
		return nil
	}
	err := &LimitError{Path: w.path, Size: end - need, Need: need, Limit: w.o.MaxBytes}
	if need <= w.o.MaxBytes-startLen { // a longer one is refused alone: it fits no file
		w.flush(now, done)
		if w.stopped == nil {
			w.stopped = err
		}
	}
	return err
}

// flush writes the block and answers for its records.
func (w *Writer) flush(now time.Time, done Done) {
	if len(w.block.bytes) == 0 {
		return
	}
	err := w.write(now)
	switch {
	case err != nil:
		w.table.rollback()
		for _, r := range w.wrote {
			done(r.index, 0, err)
		}
	case w.o.Sync == SyncEach:
		w.sync.wrote(w.wrote, done)
	default:
		for _, r := range w.wrote {
			done(r.index, r.sequence, nil)
		}
		if w.sync != nil {
			w.sync.wrote(nil, nil)
		}
	}
	w.begin()
	if err == nil && w.sideDue() {
		w.keepSide()
	}
}

// write brings the block into the file, or leaves it as it was.
func (w *Writer) write(now time.Time) error {
	if err := w.look(now); err != nil {
		var foreign *ForeignError
		if errors.As(err, &foreign) {
			w.stopped = err
		}
		return err
	}
	if w.size > w.block.off { // an end mark
		if err := w.file.Truncate(w.block.off); err != nil {
			return w.failed(err)
		}
		w.size = w.block.off
	}
	n, err := w.file.Write(w.block.bytes)
	if err != nil {
		if n > 0 {
			if cut := w.file.Truncate(w.size); cut != nil {
				w.stopped = &BrokenError{Path: w.path, Offset: w.size, Err: errors.Join(err, cut)}
				return w.stopped
			}
		}
		return w.failed(err)
	}
	w.size += int64(n)
	w.block.off = w.size
	if w.o.Written != nil {
		w.o.Written()
	}
	return nil
}

func (w *Writer) failed(err error) error {
	return &WriteError{Path: w.path, Offset: w.block.off, Transient: noRoom(err), Err: err}
}

// Close writes an end mark if one is asked for, brings all to disk and lets go
// of the path. It goes on in the background where ctx ends first.
func (w *Writer) Close(ctx context.Context) error {
	if errors.Is(w.stopped, ErrClosed) {
		return nil
	}
	ended := make(chan error, 1)
	before := w.stopped
	w.stopped = ErrClosed
	go func() { ended <- w.close(before) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w", w.path, context.Cause(ctx))
	}
}

func (w *Writer) close(stopped error) error {
	var limit *LimitError
	sound := stopped == nil || errors.As(stopped, &limit)
	var errs []error
	if sound {
		if w.sideWanted() {
			w.keepSide()
		}
		errs = append(errs, w.mark())
	}
	if w.sync != nil {
		errs = append(errs, w.sync.stop())
	} else if sound {
		errs = append(errs, syncFailed(w.path, datasync(w.file.File)))
	}
	errs = append(errs, w.file.Close(), w.lock.Unlock())
	return errors.Join(errs...)
}

// mark writes the end mark, unless the one that was found still stands.
func (w *Writer) mark() error {
	if !w.o.EndMark || w.size > w.block.off {
		return nil
	}
	now := w.o.Now()
	w.begin()
	w.block.end(w.table, now.UnixMilli())
	err := w.write(now)
	if err == nil && w.sync != nil {
		w.sync.wrote(nil, nil)
	}
	return err
}
