// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"hash/maphash"
	"sync"
)

const (
	// wordSlots is how many words a table remembers: more than the names, scopes
	// and header names of one stream most often are. A power of two.
	wordSlots = 256
	// wordMost is the longest word that is remembered, so that a table holds no
	// more than a few KiB.
	wordMost = 128
	// wordOrder is how many words of a message are looked for first where they
	// stood in the message before it.
	wordOrder = 16
)

// words makes strings of bytes whose memory is used again. Names repeat from
// message to message, so most are there already: code outside keeps a name as it
// keeps any string, and must not see it change.
type words struct {
	slots [wordSlots]string
	order [wordOrder]string // the words of the last messages by their place in them
	at    int               // the place of the next one
}

// tables are words that no decoder uses at the moment; which one it gets matters
// to its speed alone.
var (
	tables   = sync.Pool{New: func() any { return new(words) }}
	wordSeed = maphash.MakeSeed()
)

// of returns b as a string with memory of its own.
func (w *words) of(b []byte) string {
	if len(b) == 0 || len(b) > wordMost {
		return string(b)
	}
	at := w.at
	if w.at++; at >= wordOrder {
		return w.find(b)
	}
	word := &w.order[at]
	if *word != string(b) {
		*word = w.find(b)
	}
	return *word
}

// begin says that the next word is the first one of a message.
func (w *words) begin() { w.at = 0 }

// find looks for a word wherever it stood.
func (w *words) find(b []byte) string {
	slot := &w.slots[maphash.Bytes(wordSeed, b)%wordSlots]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}
