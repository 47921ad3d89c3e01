// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"slices"
	"sync"
)

// notes is what has happened so far, of which a test waits for one part after
// the other.
type notes[T any] struct {
	mu    sync.Mutex
	list  []T
	taken int
	more  chan struct{} // something was added
}

func newNotes[T any]() notes[T] { return notes[T]{more: make(chan struct{}, 1)} }

func (n *notes[T]) add(v T) {
	n.mu.Lock()
	n.list = append(n.list, v)
	n.mu.Unlock()
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// next takes at most most of what was not taken yet.
func (n *notes[T]) next(most int) []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := n.taken
	n.taken = from + min(most, len(n.list)-from)
	return slices.Clone(n.list[from:n.taken])
}

// all returns everything, taken or not.
func (n *notes[T]) all() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}
