// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// maxStamp is the longest time that is read off a header: RFC 3339 with
// nanoseconds and a zone has 35 bytes.
const maxStamp = 64

// FirstFailure returns when the message failed first, as FirstFailureHeader says;
// ok is false where it does not, or says it of a life that the message has
// behind it: a dead letter's attempts, and their time, begin anew where it is
// read.
func (h Headers) FirstFailure() (at time.Time, ok bool) {
	at, ok = h.stamp(FirstFailureHeader)
	if !ok {
		return time.Time{}, false
	}
	if died, dead := h.stamp(TimeHeader); dead && !at.After(died) {
		return time.Time{}, false
	}
	return at, true
}

// stamp reads a header with a time.
func (h Headers) stamp(name string) (time.Time, bool) {
	v, ok := h.Get(name)
	if !ok || len(v) > maxStamp {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, string(v))
	return at.UTC(), err == nil && !at.IsZero() // which is how no time is written
}

// WithFirstFailure returns the headers with FirstFailureHeader at the end, which
// replaces what they said of it. It is written to the nanosecond, so that a short
// budget is not lengthened from copy to copy. A TimeHeader that says a later time,
// by a clock that was ahead, goes: the message would begin anew for ever.
func (h Headers) WithFirstFailure(at time.Time) Headers {
	out := make(Headers, 0, len(h)+1)
	died, dead := h.stamp(TimeHeader)
	ahead := dead && !at.After(died)
	for _, x := range h {
		if sameName(x.Name, FirstFailureHeader) || ahead && sameName(x.Name, TimeHeader) {
			continue
		}
		out = append(out, x)
	}
	return append(out, Header{Name: FirstFailureHeader, Value: []byte(at.UTC().Format(time.RFC3339Nano))})
}
