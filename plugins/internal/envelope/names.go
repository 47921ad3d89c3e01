// SPDX-License-Identifier: Apache-2.0

package envelope

// The names that are remembered: foreign input must not fill memory with them.
const (
	knownNames = 64
	inOrder    = 8
	longName   = 64
)

// names remembers names of headers, so that one that comes again takes no
// memory of its own.
type names struct {
	known [knownNames]string // by slot
	order [inOrder]string    // those of the last lines, as they came
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

// line returns the name of line i of a header block.
func (n *names) line(i int, b []byte) string {
	name := n.intern(b)
	if i < inOrder && len(b) <= longName {
		n.order[i] = name
	}
	return name
}

// expected reports whether line i begins with the name that it had the last
// time, and returns what is behind "name: ".
func (n *names) expected(i int, line []byte) (name string, rest []byte, ok bool) {
	if i >= inOrder {
		return "", nil, false
	}
	name = n.order[i]
	k := len(name)
	if len(line) < k+2 || line[k] != ':' || line[k+1] != ' ' || string(line[:k]) != name {
		return "", nil, false
	}
	return name, line[k+2:], true
}
