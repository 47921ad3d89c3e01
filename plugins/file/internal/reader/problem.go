// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by the calls of a closed cursor or reader.
var ErrClosed = errors.New("the reader of the file is closed")

// Kind says what a [Problem] is about.
type Kind int

// The kinds of problems.
const (
	_ Kind = iota
	// Damage is bytes that are no record: passed alone when the record's
	// bounds hold, else up to the next readable beacon.
	Damage
	// TornTail is the beginning of a record at the end of a file that nobody
	// goes on writing.
	TornTail
	// Shrunk is a file that became shorter than what was read of it.
	Shrunk
	// Replaced is another file in the place of the one that was read.
	Replaced
	// Gone is a segment that was to be read and is not there any more.
	Gone
)

// String returns the kind as a word for messages.
func (k Kind) String() string {
	switch k {
	case Damage:
		return "damaged"
	case TornTail:
		return "torn tail"
	case Shrunk:
		return "shrunk"
	case Replaced:
		return "replaced"
	case Gone:
		return "gone"
	default:
		return "unknown"
	}
}

// Problem is something found in a file that reading goes on behind, or waits
// at.
type Problem struct {
	Kind     Kind
	Path     string
	Offset   int64
	Key      string // of the record concerned, as far as known
	Sequence uint64 // of the record concerned; 0 = unknown
	Skipped  int64  // bytes passed over; 0 = none, or the end is not known yet
	Reason   string // what is wrong and where reading goes on
}

// Error names the path, the offset, what is wrong and what was skipped.
func (p *Problem) Error() string {
	s := fmt.Sprintf("%s: %v at offset %d", p.Path, p.Kind, p.Offset)
	if p.Key != "" {
		s += fmt.Sprintf(", key %q", p.Key)
	}
	if p.Sequence != 0 {
		s += fmt.Sprintf(", sequence %d", p.Sequence)
	}
	s += ": " + p.Reason
	if p.Skipped > 0 {
		s += fmt.Sprintf("; %d bytes skipped", p.Skipped)
	}
	return s
}

// PositionError refuses a position that lies beyond what may come next.
type PositionError struct {
	Path     string
	Key      string // as the subscription names it
	Sequence uint64 // asked for; 0 when a place was
	Last     uint64 // the newest sequence of the key; 0 = none
	Offset   int64  // asked for, when a place was
	Size     int64  // of the file, when a place was asked for
	Reason   string // when neither says it
}

// Error names the path, the key, the position and the last one there is.
func (e *PositionError) Error() string {
	switch {
	case e.Reason != "":
		return fmt.Sprintf("%s: start of %q: %s", e.Path, e.Key, e.Reason)
	case e.Sequence != 0:
		return fmt.Sprintf("%s: sequence %d of %q is beyond the end: the last one is %d; start at most at %d", e.Path, e.Sequence, e.Key, e.Last, e.Last+1)
	default:
		return fmt.Sprintf("%s: offset %d is beyond the end of the file at %d", e.Path, e.Offset, e.Size)
	}
}
