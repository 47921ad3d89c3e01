// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"io"
	"strconv"
)

// ShortError says that what was given ends within a record or beacon which is
// possible so far. It wraps io.ErrUnexpectedEOF.
type ShortError struct {
	// Need is how many bytes must be given at the least. It comes from lengths
	// that the file claims: look whether the file has so many before making room.
	Need int
}

// Error says how much is needed.
func (e *ShortError) Error() string { return fmt.Sprintf("%d bytes are needed", e.Need) }

// Unwrap is io.ErrUnexpectedEOF.
func (e *ShortError) Unwrap() error { return io.ErrUnexpectedEOF }

// DamageError says that bytes cannot have been written as they are.
type DamageError struct {
	Offset   int64  // in the file, of the record or beacon
	Key      string // of the record, where it could be read
	Sequence uint64 // of the record, 0 = unknown
	Reason   string
	// Resume is where in the bytes given the next record or beacon begins: the
	// payload alone is damaged. 0 = unknown, see [Parser.Boundary].
	Resume int
}

// Error names the offset, the record and the reason.
func (e *DamageError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("damaged at offset %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("damaged at offset %d, record %d of %q: %s", e.Offset, e.Sequence, e.Key, e.Reason)
}

// quote shows foreign bytes, which are no longer than a key can say.
func quote(b []byte) string {
	const most = 40
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "..."
	}
	return strconv.Quote(string(b))
}
