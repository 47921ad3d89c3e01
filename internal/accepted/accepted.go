// SPDX-License-Identifier: Apache-2.0

// Package accepted remembers texts that were checked and found good: options of
// messages are the same few, message after message, and a check costs more than
// all else that is done for one.
package accepted

import "sync"

// The bounds of what is remembered: more texts than a service has options of
// messages, and longer ones than most of them are.
const (
	maxTexts = 64
	maxSize  = 512
)

// Texts are those that were found good. The zero value is empty. It may be used
// by any goroutine.
type Texts struct {
	mu   sync.RWMutex
	good map[string]struct{}
}

// Has reports whether a text is remembered.
func (t *Texts) Has(text []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.good[string(text)]
	return ok
}

// Add remembers a text, unless it is long. Where there are many, the others are
// forgotten: they are checked again.
func (t *Texts) Add(text []byte) {
	if len(text) > maxSize {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.good == nil || len(t.good) == maxTexts {
		t.good = make(map[string]struct{})
	}
	t.good[string(text)] = struct{}{}
}
