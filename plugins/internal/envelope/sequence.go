// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"slices"

	"github.com/longshore-go/longshore/core"
)

// SequenceHeader is the header with the number of a record or line.
const SequenceHeader = "stream-sequence"

// MaxDigits is how long a number can be.
const MaxDigits = 20

// IsSequence compares a name with SequenceHeader, ignoring the case of letters.
func IsSequence(name string) bool {
	if len(name) != len(SequenceHeader) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != SequenceHeader[i] {
			return false
		}
	}
	return true
}

// SetSequence sets SequenceHeader to value in a list that is the caller's, in
// the place of one that is there already.
func SetSequence(headers core.Headers, value []byte) core.Headers {
	isSequence := func(h core.Header) bool { return IsSequence(h.Name) }
	number := core.Header{Name: SequenceHeader, Value: value}
	i := slices.IndexFunc(headers, isSequence)
	if i < 0 {
		return append(headers, number)
	}
	headers[i] = number
	rest := slices.DeleteFunc(headers[i+1:], isSequence)
	return headers[:i+1+len(rest)]
}

// WithoutSequence returns headers without SequenceHeader; they are the same
// list where there is none.
func WithoutSequence(headers core.Headers) core.Headers {
	isSequence := func(h core.Header) bool { return IsSequence(h.Name) }
	if !slices.ContainsFunc(headers, isSequence) {
		return headers
	}
	return slices.DeleteFunc(slices.Clone(headers), isSequence)
}
