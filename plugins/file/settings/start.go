// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
)

// StartKind says what a Start names.
type StartKind uint8

// The kinds of starts. The zero value leaves it to the subscription.
const (
	StartDefault   StartKind = iota
	StartBeginning           // the first record of the oldest file
	StartEnd                 // what is written from now on
	StartSequence            // the record with this sequence, included
	StartTime                // the records strictly later
)

// Start is where a subscription begins. In settings it is a text: "beginning",
// "end", "sequence 7", "timestamp 2026-11-30T00:00:00Z", or a timestamp in
// milliseconds since 1970.
type Start struct {
	kind     StartKind
	sequence uint64
	millis   int64
}

// Beginning starts at the first record.
func Beginning() Start { return Start{kind: StartBeginning} }

// End starts behind the last record.
func End() Start { return Start{kind: StartEnd} }

// Sequence starts at the record of the key with this sequence, included. 0 and 1
// are the beginning; one more than the last waits for the next record, anything
// beyond is refused. It needs a subscription of one key.
func Sequence(n uint64) Start { return Start{kind: StartSequence, sequence: n} }

// After starts at the first record that is strictly later than t, in whole
// milliseconds.
func After(t time.Time) Start { return Start{kind: StartTime, millis: t.UnixMilli()} }

// Kind says what the start names.
func (s Start) Kind() StartKind { return s.kind }

// Number is the sequence of a StartSequence.
func (s Start) Number() uint64 { return s.sequence }

// Millis is the time of a StartTime in milliseconds since 1970.
func (s Start) Millis() int64 { return s.millis }

// String returns the start as it stands in settings, "" for the default.
func (s Start) String() string {
	switch s.kind {
	case StartBeginning:
		return wordBeginning
	case StartEnd:
		return wordEnd
	case StartSequence:
		return wordSequence + " " + strconv.FormatUint(s.sequence, 10)
	case StartTime:
		t := time.UnixMilli(s.millis).UTC()
		if t.Year() > lastYear {
			return wordTimestamp + " " + strconv.FormatInt(s.millis, 10)
		}
		return wordTimestamp + " " + t.Format(time.RFC3339Nano)
	default:
		return ""
	}
}

// lastYear is the last one that has a text in RFC 3339.
const lastYear = 9999

// The words of a start.
const (
	wordBeginning = "beginning"
	wordEnd       = "end"
	wordSequence  = "sequence"
	wordTimestamp = "timestamp"
)

// MarshalText returns what String does.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String writes. A timestamp may be milliseconds too.
func (s *Start) UnmarshalText(text []byte) error {
	got, err := ParseStart(string(text))
	if err == nil {
		*s = got
	}
	return err
}

// ParseStart reads a start. What it cannot read is a *core.Fault with advice.
func ParseStart(text string) (Start, error) {
	word, value, valued := strings.Cut(text, " ")
	switch {
	case word == wordBeginning && !valued:
		return Beginning(), nil
	case word == wordEnd && !valued:
		return End(), nil
	case word == wordSequence && valued:
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return Start{}, unread(fmt.Sprintf("%q is no sequence", value), "give a whole number, as in %q", wordSequence+" 7")
		}
		return Sequence(n), nil
	case word == wordTimestamp && valued:
		return parseTimestamp(value)
	}
	return Start{}, unread(fmt.Sprintf("%q is no start", text), "give %s, %s, %q or %q",
		wordBeginning, wordEnd, wordSequence+" 7", wordTimestamp+" 2026-11-30T00:00:00Z")
}

// A number from leastSeconds on and below mostSeconds is a time of 2001 to 5138 in
// seconds, and one of the early seventies in milliseconds, when there were no
// stream files.
const (
	leastSeconds = 1_000_000_000
	mostSeconds  = 100_000_000_000
)

// parseTimestamp reads a time or milliseconds since 1970.
func parseTimestamp(value string) (Start, error) {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
		if n >= leastSeconds && n < mostSeconds {
			return Start{}, unread(fmt.Sprintf("%q is a time in seconds, as it seems", value),
				"give milliseconds, as in %q, or a time as in 2026-11-30T00:00:00Z", wordTimestamp+" "+value+"000")
		}
		return Start{kind: StartTime, millis: n}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err == nil && t.UnixMilli() >= 0 {
		return After(t), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, value); err == nil {
			return Start{}, unread(fmt.Sprintf("%q does not say in which time zone", value), "write it out, as in %q, or with an offset such as +02:00 for the Z",
				wordTimestamp+" "+t.Format(time.RFC3339))
		}
	}
	return Start{}, unread(fmt.Sprintf("%q is no time since 1970", value), "give it as in 2026-11-30T00:00:00Z, or in milliseconds")
}

// unread is the fault of a text that is no start.
func unread(message, fix string, args ...any) *core.Fault {
	return &core.Fault{
		Code: core.FaultInvalid, Message: "read a start",
		Diagnostics: []core.Diagnostic{{Message: message, Fix: fmt.Sprintf(fix, args...)}},
	}
}
