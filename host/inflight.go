// SPDX-License-Identifier: Apache-2.0

package host

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// inFlight bounds what is under way, in messages and in bytes; bytes are
// exceeded by one message at most. Who waits for room gets it in the order of
// coming.
type inFlight struct {
	messages int // the limits
	bytes    int64

	mu      sync.Mutex
	n       int // taken
	taken   int64
	waiting list.List     // of *roomWaiter
	idle    chan struct{} // closed when nothing is taken; nil = nobody waits
}

// roomWaiter waits for room.
type roomWaiter struct {
	size int64
	got  chan struct{} // closed when it has the room
}

// has reports whether one more message may go. b.mu is held.
func (b *inFlight) has() bool { return b.n < b.messages && b.taken < b.bytes }

// tryTake takes room for a message of size where there is some.
func (b *inFlight) tryTake(size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting.Len() > 0 || !b.has() {
		return false
	}
	b.n++
	b.taken += size
	return true
}

// take takes room for a message of size, and waits for it until ctx ends or
// late comes; nil = never. It reports whether it has it.
func (b *inFlight) take(ctx context.Context, size int64, late <-chan time.Time) bool {
	w := &roomWaiter{size: size, got: make(chan struct{})}
	b.mu.Lock()
	at := b.waiting.PushBack(w)
	b.admit()
	b.mu.Unlock()
	select {
	case <-w.got:
		return true
	case <-ctx.Done():
	case <-late:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.got: // it came beside
		return true
	default:
	}
	b.waiting.Remove(at)
	return false
}

// give gives a message's room back.
func (b *inFlight) give(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n--
	b.taken -= size
	b.admit()
	if b.n == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// admit gives room to those who wait. b.mu is held.
func (b *inFlight) admit() {
	for b.waiting.Len() > 0 && b.has() {
		w, _ := b.waiting.Remove(b.waiting.Front()).(*roomWaiter)
		b.n++
		b.taken += w.size
		close(w.got)
	}
}

// drain waits until nothing is taken, or ctx ends, and returns what is left.
func (b *inFlight) drain(ctx context.Context) int {
	b.mu.Lock()
	if b.n > 0 && b.idle == nil {
		b.idle = make(chan struct{})
	}
	n, idle := b.n, b.idle
	b.mu.Unlock()
	if n == 0 {
		return 0
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}
