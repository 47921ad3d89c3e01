// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// nextSuffix is what the name of a file in the making has behind the path.
const nextSuffix = ".next"

// magic is how a stream file begins, whatever its name.
var magic = format.Header{}.Append(nil)[:3]

// beginning is what a new file holds: header and priming record.
func beginning(h format.Header, primed uint64, at int64) []byte {
	return format.AppendRecord(h.Append(nil),
		format.Head{Key: format.PrimeKey, Sequence: primed, Time: at}, []byte(primePayload))
}

// create makes the first file of the path. It comes to its name whole, and
// takes it from nobody.
func (w *Writer) create(h format.Header) error {
	next := w.path + nextSuffix
	if err := writeNew(next, beginning(h, 1, w.o.Now().UnixMilli()), 0o644, w.o.Sync != SyncNone); err != nil {
		return fmt.Errorf("create %s: %w", w.path, err)
	}
	err := os.Link(next, w.path)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		// The file system has no second names.
		err = os.Rename(next, w.path)
	} else {
		err = errors.Join(err, os.Remove(next))
	}
	if err == nil && w.o.Sync != SyncNone {
		err = syncFolder(w.path)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", w.path, err)
	}
	return nil
}

// fill begins a file that exists and is empty.
func (w *Writer) fill(h format.Header) error {
	path := w.path
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("begin %s: %w", path, err)
	}
	if _, err = f.Write(beginning(h, 1, w.o.Now().UnixMilli())); err != nil {
		err = errors.Join(err, f.Truncate(0))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("begin %s: %w", path, err)
	}
	return nil
}

// writeNew writes a file that is not there yet, whole or not at all.
func writeNew(path string, b []byte, mode fs.FileMode, sync bool) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return &InTheWayError{Path: path}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = datasync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// syncFolder brings names to disk.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) { // not every file system does that
		err = nil
	}
	return errors.Join(err, d.Close())
}

// mend finishes, or takes back, what was going on when a writer of the path was
// killed.
func (w *Writer) mend() error {
	created, whole, err := w.leftNext()
	if err != nil || !whole {
		return err
	}
	active, err := segment.Open(segment.Segment{Path: w.path})
	var kind *segment.KindError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.o.Logger.Info("a rotation that was cut short is finished", "path", w.path)
		return os.Rename(w.path+nextSuffix, w.path)
	case errors.As(err, &kind):
		return w.dropNext()
	case err != nil:
		return err
	}
	fi, err := active.Stat()
	old := active.Header.Created
	if err := errors.Join(err, active.Close()); err != nil {
		return err
	}
	s, err := readSide(w.path + sideSuffix)
	if err != nil || s.created != created || s.before != old || s.beforeSize != fi.Size() {
		return w.dropNext() // the old file was written on, or the new one is another's
	}
	list, err := segment.List(w.path)
	if err != nil {
		return err
	}
	w.o.Logger.Info("a rotation that was cut short is finished", "path", w.path)
	return w.changeNames(list[len(list)-1].Number)
}

// leftNext looks at what a writer before this one, or a rotation that failed, has
// left of a file in the making. What is not whole is removed.
func (w *Writer) leftNext() (created int64, whole bool, err error) {
	f, err := segment.Open(segment.Segment{Path: w.path + nextSuffix})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, false, nil
	case errors.As(err, new(*segment.KindError)):
		return 0, false, w.dropNext()
	case err != nil:
		return 0, false, err
	}
	whole, err = w.isNext(f)
	if err = errors.Join(err, f.Close()); err == nil && !whole {
		err = w.dropNext()
	}
	return f.Header.Created, whole, err
}

// isNext reports whether a stream file in the making is whole. One that a writer
// of this path has not made, or that has been written on, is in the way.
func (w *Writer) isNext(f *segment.File) (bool, error) {
	fi, err := f.Stat()
	if err != nil {
		return false, err
	}
	if there, err := segment.IdentifyPath(w.path); err == nil && there == f.ID {
		return false, os.Remove(f.Path) // a second name of the first file
	}
	named, err := format.ParseHeader(format.Header{Name: filepath.Base(w.path), Interval: format.IntervalUnit}.Append(nil))
	if err == nil && (f.Header.Name != named.Name || fi.Size() > startLen) {
		err = &InTheWayError{Path: f.Path}
	}
	return fi.Size() == startLen, err
}

// dropNext removes a file in the making, but nothing that a writer of this path
// cannot have left there.
func (w *Writer) dropNext() error {
	b, err := readSome(w.path+nextSuffix, int(startLen)+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	header := len(bytes.TrimRight(b, "\x00")) == 0 || bytes.HasPrefix(b, magic[:min(len(b), len(magic))])
	if !header || len(b) > int(startLen) {
		return &InTheWayError{Path: w.path + nextSuffix}
	}
	w.o.Logger.Info("a file that was in the making is removed", "path", w.path+nextSuffix)
	return os.Remove(w.path + nextSuffix)
}
