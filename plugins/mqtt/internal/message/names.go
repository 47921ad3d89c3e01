// SPDX-License-Identifier: Apache-2.0

package message

import "github.com/longshore-go/longshore/plugins/internal/names"

// inOrder is for how many user properties the name that each had the last time is
// known.
const inOrder = 8

// propertyNames remembers topics and names of user properties, so that one that
// comes again takes no memory of its own.
type propertyNames struct {
	names.Table
	order [inOrder]string // of the last user properties, as they came
	long  string          // the last topic that is too long for the table
}

// topic is a topic as text.
func (n *propertyNames) topic(b []byte) string {
	if len(b) <= names.Longest {
		return n.Intern(b)
	}
	if n.long != string(b) {
		n.long = string(b)
	}
	return n.long
}

// header is the name of user property i as text. It reports false where it is not
// readable. The name that the property had the last time is looked at first.
func (n *propertyNames) header(i int, b []byte) (string, bool) {
	if i < inOrder && len(b) > 0 && n.order[i] == string(b) {
		return n.order[i], true
	}
	if !readable(b) {
		return "", false
	}
	name := n.Intern(b)
	if i < inOrder && len(name) <= names.Longest {
		n.order[i] = name
	}
	return name, true
}
