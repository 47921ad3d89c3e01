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
	end      int // in the block, behind it and the beacon that may follow
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
		if err == nil && w.table.ended(e.Key) {
			err = &ExhaustedError{Path: w.path, What: "the last sequence of " + e.Key}
		}
		if err == nil {
			err = w.makeRoom(entries, i, size, now, done)
		}
		if err != nil {
			done(i, 0, err)
			continue
		}
		sequence := w.block.record(w.table, e.Key, e.Headers, e.Payload, size, wrapped, now.UnixMilli())
		w.wrote = append(w.wrote, record{index: i, sequence: sequence, end: len(w.block.bytes)})
		if len(w.block.bytes) >= maxBlock {
			w.flush(entries, now, done)
		}
	}
	w.flush(entries, now, done)
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

// makeRoom sees to it that the file may take entry i, if need be by beginning
// another file.
func (w *Writer) makeRoom(entries []Entry, i, size int, now time.Time, done Done) error {
	e := &entries[i]
	need := w.block.most(w.table, e.Key, format.RecordLen(e.Key, size))
	end := w.block.off + int64(len(w.block.bytes)) + need
	if w.o.rotates() && w.due(end, now) {
		w.flush(entries, now, done)
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
		w.flush(entries, now, done)
		if w.stopped == nil {
			w.stopped = err
		}
	}
	return err
}

// flush writes the block and answers for its records.
func (w *Writer) flush(entries []Entry, now time.Time, done Done) {
	if len(w.block.bytes) == 0 {
		return
	}
	n, err := w.write(now)
	if err != nil {
		for _, r := range w.salvage(entries, n, now) {
			done(r.index, 0, err)
		}
	}
	switch {
	case len(w.wrote) == 0:
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
	w.block.off += int64(n)
	w.begin()
	if err == nil && w.sideDue() {
		w.keepSide()
	}
}

// salvage goes back to the state behind the first n bytes of the block, which
// are whole records and in the file: readers may have seen them. It returns the
// other records; those that stay are confirmed as if they had been the batch.
func (w *Writer) salvage(entries []Entry, n int, now time.Time) (refused []record) {
	stay := 0
	for stay < len(w.wrote) && w.wrote[stay].end <= n {
		stay++
	}
	w.table.rollback()
	w.block.bytes = w.block.bytes[:0]
	for _, r := range w.wrote[:stay] {
		e := &entries[r.index]
		size, wrapped, _ := measure(e) // it was good before
		w.block.record(w.table, e.Key, e.Headers, e.Payload, size, wrapped, now.UnixMilli())
	}
	refused, w.wrote = w.wrote[stay:], w.wrote[:stay]
	return refused
}

// write brings the block into the file, or as many of its records as there is
// room for: n bytes. An end mark goes.
func (w *Writer) write(now time.Time) (n int, err error) {
	if err := w.look(now); err != nil {
		return 0, w.lasting(err)
	}
	if w.size > w.block.off { // an end mark
		if err := w.file.Truncate(w.block.off); err != nil {
			return 0, w.failed(err)
		}
		w.size = w.block.off
	}
	n, err = w.file.Write(w.block.bytes)
	if err != nil {
		whole := 0
		for _, r := range w.wrote {
			if r.end <= n {
				whole = r.end
			}
		}
		w.size += int64(whole)
		if n > whole {
			if cut := w.file.Truncate(w.size); cut != nil {
				err = errors.Join(err, cut)
				w.stopped = &BrokenError{Path: w.path, Offset: w.size, Err: err}
				return whole, &BrokenError{Path: w.path, Offset: w.size, Unknown: true, Err: err}
			}
		}
		n, err = whole, &WriteError{Path: w.path, Offset: w.size, Transient: noRoom(err), Err: err}
	} else {
		w.size += int64(n)
	}
	if n > 0 && w.o.Written != nil {
		w.o.Written()
	}
	return n, err
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
		if err := datasync(w.file.File); err != nil {
			errs = append(errs, &SyncError{Path: w.path, Err: err})
		}
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
	n, err := w.write(now)
	w.block.off += int64(n)
	if err == nil && w.sync != nil {
		w.sync.wrote(nil, nil)
	}
	return err
}
