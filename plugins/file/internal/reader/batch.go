// SPDX-License-Identifier: Apache-2.0

package reader

// Place is the start of a record: the segment by the creation time in its
// header, which rises from segment to segment of a path, and the offset in it.
type Place struct {
	Created int64 // ms since the epoch
	Offset  int64
}

// StartKind says how a [Start] names its place.
type StartKind int

// The kinds of starts.
const (
	// Beginning is the first record of the oldest segment there is.
	Beginning StartKind = iota
	// End is behind everything that stands in the file now.
	End
	// Sequence is the record of the key with that sequence or the first
	// later one. 0 and 1 are the beginning; the one behind the last waits.
	Sequence
	// Time is the first record strictly later.
	Time
	// At is a place.
	At
)

// Start is where a cursor begins.
type Start struct {
	Kind     StartKind
	Sequence uint64
	Time     int64 // ms since the epoch
	At       Place
}

// Record is one record that matches. The payload is not written again unless it
// is spent, so it may be kept; it is as it stands in the file, with its envelope.
type Record struct {
	Key      string
	Sequence uint64
	Time     int64 // ms since the epoch
	Payload  []byte
	At       Place
}

// Batch is what [Cursor.Next] found. Its slices are used again at the next
// call.
type Batch struct {
	Records  []Record
	Problems []*Problem // found behind Records
	// CaughtUp says that a replay has delivered what there was.
	CaughtUp bool
	// Ended says that an end mark stands here, with nothing behind it.
	Ended bool
}

// empty reports whether there is nothing to tell.
func (b *Batch) empty() bool {
	return len(b.Records) == 0 && len(b.Problems) == 0 && !b.CaughtUp && !b.Ended
}
