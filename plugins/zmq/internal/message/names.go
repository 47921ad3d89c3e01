// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"

	"github.com/longshore-go/longshore/plugins/internal/names"
)

// inOrder is for how many lines the name that each had the last time is known.
const inOrder = 8

// lineNames remembers names of messages and headers, so that one that comes again
// takes no memory of its own.
type lineNames struct {
	names.Table
	order [inOrder]string // of the last header lines, as they came
}

// header splits line i of a header frame. It reports false for one that has no
// colon. The name that the line had the last time is looked at first.
func (n *lineNames) header(i int, line []byte) (name string, value []byte, ok bool) {
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
	name = n.Intern(bytes.TrimSpace(before))
	if i < inOrder && len(name) <= names.Longest {
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
