// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"strings"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// Match says which keys a cursor delivers.
type Match struct {
	text   string
	prefix bool // text without its star is a prefix
}

// Pattern reads a subscription's name: a key, a prefix followed by a star, or
// a star alone. Stars elsewhere are no pattern: keys have none.
//
// A pattern leaves out the records a file has for its own use, which are those
// of [format.PrimeKey]. No match delivers end marks.
func Pattern(name string) Match {
	if p, ok := strings.CutSuffix(name, "*"); ok {
		return Match{text: p, prefix: true}
	}
	return Match{text: name}
}

// Exact reports whether the match is one key.
func (m Match) Exact() bool { return !m.prefix }

// String returns the name the match was made of.
func (m Match) String() string {
	if m.prefix {
		return m.text + "*"
	}
	return m.text
}

// Has reports whether key is delivered.
func (m Match) Has(key string) bool {
	if !m.prefix {
		return key == m.text
	}
	return strings.HasPrefix(key, m.text) && key != format.PrimeKey
}
