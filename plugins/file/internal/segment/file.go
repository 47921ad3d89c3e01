// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// ID tells files apart, whatever their names.
type ID struct{ Dev, Inode uint64 }

// File is an open stream file whose header has been read. It reads only.
type File struct {
	*os.File
	Segment
	Header format.Header
	ID     ID
}

// KindError says that a file is no stream file, or none that can be read.
type KindError struct {
	Path   string
	Offset int64
	Reason string
	Short  bool  // it is shorter than a header, which may still be in the making
	Err    error // from package format, or nil
}

// NewKindError says what package format found where a header should be.
func NewKindError(path string, err error, short bool) *KindError {
	e := &KindError{Path: path, Reason: err.Error(), Short: short, Err: err}
	if h, ok := errors.AsType[*format.HeaderError](err); ok {
		e.Offset, e.Reason = int64(h.Offset), h.Reason
	}
	return e
}

// Error names the file, the offset and the reason.
func (e *KindError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s is not a stream file (.ss): %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s is not a stream file (.ss): its header, at offset %d: %s", e.Path, e.Offset, e.Reason)
}

// Unwrap returns what package format found.
func (e *KindError) Unwrap() error { return e.Err }

// Open opens a file for reading and reads its header. A file that is something
// else is a *KindError. What is no regular file is not opened at all, so that
// nothing waits for a pipe.
func Open(s Segment) (*File, error) {
	f, err := open(s.Path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	h, id, err := identify(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{File: f, Segment: s, Header: h, ID: id}, nil
}

// OpenWritable is Open for the writer of a path: the file can be read anywhere
// and written at its end. A missing file is not created.
func OpenWritable(s Segment) (*File, error) {
	f, err := open(s.Path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	h, id, err := identify(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{File: f, Segment: s, Header: h, ID: id}, nil
}

func open(path string, flags int) (*os.File, error) {
	f, err := OpenRegular(path, flags)
	if err != nil && !errors.As(err, new(*KindError)) {
		err = fmt.Errorf("open stream file: %w", err)
	}
	return f, err
}

// OpenRegular opens an existing file as os.OpenFile does, if it is a regular
// one. Anything else is a *KindError and not opened: pipes would be waited for,
// and devices may do something.
func OpenRegular(path string, flags int) (*os.File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := regular(path, fi); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if fi, err = f.Stat(); err == nil {
		err = regular(path, fi) // it may be another one by now
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func regular(path string, fi os.FileInfo) error {
	switch {
	case fi.Mode().IsRegular():
		return nil
	case fi.IsDir():
		return &KindError{Path: path, Reason: "a folder"}
	default:
		return &KindError{Path: path, Reason: "not a regular file"}
	}
}

func identify(f *os.File) (format.Header, ID, error) {
	id, err := Identify(f)
	if err != nil {
		return format.Header{}, ID{}, err
	}
	var b [format.HeaderSize]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return format.Header{}, ID{}, fmt.Errorf("read the header: %w", err)
	}
	h, err := format.ParseHeader(b[:n])
	if err != nil {
		return format.Header{}, ID{}, NewKindError(f.Name(), err, n < len(b))
	}
	return h, id, nil
}

// Identify returns the identity of an open file.
func Identify(f *os.File) (ID, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return ID{}, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	return idOf(&st), nil
}

// IdentifyPath returns the identity of the file at a path. A missing one is
// fs.ErrNotExist.
func IdentifyPath(path string) (ID, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Stat(path, &st) }); err != nil {
		return ID{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return idOf(&st), nil
}

func idOf(st *unix.Stat_t) ID { return ID{Dev: wide(st.Dev), Inode: st.Ino} }

// wide widens the number of a device, which has another type on each system.
func wide[T int32 | uint32 | uint64](n T) uint64 { return uint64(n) }

// again repeats a system call that a signal cut short.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
