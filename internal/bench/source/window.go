// SPDX-License-Identifier: Apache-2.0

package source

import "sync"

// window is the credit of a baseline's stream: the least that a plugin without
// the SDK needs.
type window struct {
	mu          sync.Mutex
	changed     chan struct{}
	messages    uint64
	outstanding uint64
	stopped     bool
}

func newWindow() *window { return &window{changed: make(chan struct{}, 1)} }

// set sets the window.
func (w *window) set(messages uint64) {
	w.mu.Lock()
	w.messages = messages
	w.mu.Unlock()
	w.wake()
}

// settle returns the credit of n deliveries.
func (w *window) settle(n uint64) {
	w.mu.Lock()
	w.outstanding -= n
	w.mu.Unlock()
	w.wake()
}

// stop ends intake.
func (w *window) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.wake()
}

func (w *window) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// take waits for room and takes at most n messages of it; 0 after a stop.
func (w *window) take(n int, done <-chan struct{}) int {
	for {
		w.mu.Lock()
		room := int(w.messages) - int(w.outstanding)
		if w.stopped {
			w.mu.Unlock()
			return 0
		}
		if room > 0 {
			n = min(n, room)
			w.outstanding += uint64(n)
			w.mu.Unlock()
			return n
		}
		w.mu.Unlock()
		select {
		case <-w.changed:
		case <-done:
			return 0
		}
	}
}
