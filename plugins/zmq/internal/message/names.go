// SPDX-License-Identifier: Apache-2.0

package message

import "bytes"

// The names that are remembered: foreign input must not fill memory with them.
const (
	knownNames = 64
	inOrder    = 8
	longName   = 64
)

// names remembers names of messages and headers, so that one that comes again
// takes no memory of its own.
type names struct {
	known [knownNames]string // by slot
	order [inOrder]string    // of the last header lines, as they came
}

// intern returns b as text.
func (n *names) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > longName {
		return string(b)
	}
	at := &n.known[slot(b)]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}

// slot is where a name is remembered.
func slot(b []byte) uint32 {
	h := uint32(len(b))
	h = h*31 + uint32(b[0])
	h = h*31 + uint32(b[len(b)/2])
	h = h*31 + uint32(b[len(b)-1])
	return h % knownNames
}

// header splits line i of a header frame. It reports false for one that has no
// colon. The name that the line had the last time is looked at first.
func (n *names) header(i int, line []byte) (name string, value []byte, ok bool) {
	if i < inOrder {
		name = n.order[i]
		if k := len(name); k > 0 && len(line) > k && line[k] == ':' && string(line[:k]) == name {
			return name, trim(line[k+1:]), true
		}
	}
	before, after, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return "", nil, false
	}
	name = n.intern(bytes.TrimSpace(before))
	if i < inOrder && len(name) <= longName {
		n.order[i] = name
	}
	return name, trim(after), true
}

// trim cuts blanks off both ends, a CR before the line's end among them. What
// has none left is empty, not nil.
func trim(value []byte) []byte {
	if value = bytes.TrimSpace(value); value == nil {
		return []byte{}
	}
	return value[:len(value):len(value)]
}
