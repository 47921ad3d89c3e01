// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// ErrClosed is what a closed writer answers.
var ErrClosed = errors.New("the writer is closed")

// LimitError says that a record would make the file longer than it may become.
// It stays so.
type LimitError struct {
	Path  string
	Size  int64 // of the file
	Need  int64 // of the record, with beacons
	Limit int64
}

// Error names the file, its size and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("write %s: a record of %d bytes behind %d would pass max_bytes %d", e.Path, e.Need, e.Size, e.Limit)
}

// WriteError says that a record is not in the file, and nothing of it.
type WriteError struct {
	Path      string
	Offset    int64 // where the file ends
	Transient bool  // there is no room at present
	Err       error
}

// Error names the file and the offset.
func (e *WriteError) Error() string {
	return fmt.Sprintf("write %s at offset %d: %v; nothing of it is left in the file", e.Path, e.Offset, bare(e.Err))
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// SyncError says that the kernel could not bring to disk what was written. The
// writer writes no more.
type SyncError struct {
	Path    string
	Unknown bool // the record was written, and may be on disk or not
	Err     error
}

// Error names the file and what to do.
func (e *SyncError) Error() string {
	return fmt.Sprintf("sync %s: %v: what was written since the last sync may be lost; look after the disk and start again", e.Path, bare(e.Err))
}

// Unwrap returns the cause.
func (e *SyncError) Unwrap() error { return e.Err }

// BrokenError says that the file could not be brought back to a whole state
// after a write that failed. The writer writes no more; the next one that opens
// the file cuts off what is torn.
type BrokenError struct {
	Path   string
	Offset int64 // where the torn bytes begin
	// Unknown says that the record may be in the file: it was part of what could
	// not be cut off.
	Unknown bool
	Err     error
}

// Error names the file and the offset.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s has a torn record at offset %d that could not be cut off: %v; start again", e.Path, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// ForeignError says that somebody else has changed the file, lock or not. The
// writer writes no more: its beacons would stand in the wrong places.
type ForeignError struct {
	Path   string
	Reason string
}

// Error names the file and what was seen.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is changed by somebody else: %s: a path has one writer", e.Path, e.Reason)
}

// KeyError says that a record cannot have its key.
type KeyError struct{ Key, Reason string }

// Error names the key.
func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", e.Key, e.Reason) }

// SizeError says that a message is longer than a record can be.
type SizeError struct {
	Key         string
	Size, Limit int
}

// Error names key and sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("a message under %s takes %d bytes, a record holds %d", e.Key, e.Size, e.Limit)
}

// TornError says that a file ends within a record and must not be cut.
type TornError struct {
	Path   string
	Offset int64 // of the torn record
	Bytes  int64
}

// Error names the file and the offset.
func (e *TornError) Error() string {
	return fmt.Sprintf("%s ends with %d bytes of a torn record at offset %d: set torn_tail to cut, or cut it by hand", e.Path, e.Bytes, e.Offset)
}

// DamagedError says that the end of a file is not understood. Nothing was
// written to it.
type DamagedError struct {
	Path string
	Err  *format.DamageError
}

// Error names the file, the offset and the reason.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is not written: its end is damaged: %v; move the file away, or cut it at that offset", e.Path, e.Err)
}

// Unwrap returns the damage.
func (e *DamagedError) Unwrap() error { return e.Err }

// InTheWayError says that a file which this writer did not make has the name of
// one that it must make.
type InTheWayError = segment.InTheWayError

// ExhaustedError says that a number of the format has come to its end.
type ExhaustedError struct {
	Path string
	What string
}

// Error names the file and the number.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("%s: %s is the highest possible: go on in another file", e.Path, e.What)
}

// bare is the cause of an error that names its file, for a text that names it.
func bare(err error) error {
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // what is around it says more
		return e.Err
	}
	return err
}
