// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/longshore-go/longshore/plugins/internal/names"

// inOrder is for how many lines the name that each had the last time is known.
const inOrder = 8

// lineNames remembers names of headers, so that one that comes again takes no
// memory of its own.
type lineNames struct {
	names.Table
	order [inOrder]string // those of the last lines, as they came
}

// line returns the name of line i of a header block.
func (n *lineNames) line(i int, b []byte) string {
	name := n.Intern(b)
	if i < inOrder && len(b) <= names.Longest {
		n.order[i] = name
	}
	return name
}

// expected reports whether line i begins with the name that it had the last
// time, and returns what is behind "name: ".
func (n *lineNames) expected(i int, line []byte) (name string, rest []byte, ok bool) {
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
