// SPDX-License-Identifier: Apache-2.0

package core

import (
	"math"
	"strconv"
)

// The headers that the runtime reads and writes on copies.
const (
	// CountHeader holds how many copies of a message were published so far, in
	// decimal. Its name is the wire format of the system that longshore works
	// together with.
	CountHeader = "x-ruststream-retry-count"
	// JournalHeader holds the id of a copy's row in the journal. It is on copies
	// that only this process reads, and is taken off before a handler sees them.
	JournalHeader = "x-longshore-journal"
)

// Count returns what the count header says: the copies published so far. It is
// read leniently: absent and unreadable ones are 0, one leading plus sign and
// leading zeros are allowed, blanks are not. bad says that there is a header and
// it is no number.
func (h Headers) Count() (copies uint64, bad bool) {
	v, ok := h.Get(CountHeader)
	if !ok {
		return 0, false
	}
	copies, ok = parseCount(v)
	return copies, !ok
}

func parseCount(v []byte) (uint64, bool) {
	if len(v) > 0 && v[0] == '+' {
		v = v[1:]
	}
	if len(v) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// ForCopy appends to into the headers of a copy of a message with the headers
// h: as received, but for the count, which becomes count, and the journal's
// header, which is left out. The count stands where the first of its name
// stood, any case, else last. Values are shared with h.
func (h Headers) ForCopy(into Headers, count uint64) Headers {
	value := strconv.AppendUint(nil, count, 10)
	done := false
	for _, x := range h {
		switch {
		case sameName(x.Name, JournalHeader):
		case !sameName(x.Name, CountHeader):
			into = append(into, x)
		case !done:
			into = append(into, Header{Name: CountHeader, Value: value})
			done = true
		}
	}
	if !done {
		into = append(into, Header{Name: CountHeader, Value: value})
	}
	return into
}

// ForForward appends to into the headers of a message that is passed on as a
// new one: as received, but without the count and everything of longshore's
// own.
func (h Headers) ForForward(into Headers) Headers {
	for _, x := range h {
		if !sameName(x.Name, CountHeader) && !ownName(x.Name) {
			into = append(into, x)
		}
	}
	return into
}

// ownPrefix begins the name of every header that is longshore's own.
const ownPrefix = "x-longshore-"

func ownName(name string) bool {
	return len(name) >= len(ownPrefix) && sameName(name[:len(ownPrefix)], ownPrefix)
}
