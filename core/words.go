// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strings"
)

// Every enum of this package prints, marshals and parses as a word in lower
// case with hyphens, the one that the documentation uses. Log codes and
// actions of plans have the words of the settlement reference.

// A WordError says that a text is none of an enum's words.
type WordError struct {
	Kind  string // what was expected, such as "ack mode"
	Text  string
	Words []string // what it may be
}

// Error names the text and the words that are allowed.
func (e *WordError) Error() string {
	return fmt.Sprintf("read %s %q: use one of %s", e.Kind, e.Text, strings.Join(e.Words, ", "))
}

type enum interface {
	~uint8
	vocabulary() (kind string, words []string)
}

func word[E enum](e E) string {
	kind, words := e.vocabulary()
	if int(e) < len(words) {
		return words[e]
	}
	return fmt.Sprintf("%s(%d)", strings.ReplaceAll(kind, " ", "-"), uint8(e))
}

func marshalWord[E enum](e E) ([]byte, error) {
	kind, words := e.vocabulary()
	if int(e) >= len(words) {
		return nil, &WordError{Kind: kind, Text: word(e), Words: words}
	}
	return []byte(words[e]), nil
}

func unmarshalWord[E enum](e *E, text []byte) error {
	kind, words := (*e).vocabulary()
	for i, w := range words {
		if w == string(text) {
			*e = E(i)
			return nil
		}
	}
	return &WordError{Kind: kind, Text: string(text), Words: words}
}
