// SPDX-License-Identifier: Apache-2.0

// Package names remembers names that come again and again.
package names

// Longest is the most bytes of a name that is remembered.
const Longest = 64

// known is how many names are remembered: foreign input must not fill memory with
// them.
const known = 64

// Table remembers names, so that one that comes again takes no memory of its own.
// The zero value is empty; one goroutine uses it at a time.
type Table struct {
	slots [known]string
}

// Intern returns b as text.
func (t *Table) Intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > Longest {
		return string(b)
	}
	at := &t.slots[slot(b)]
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
	return h % known
}
