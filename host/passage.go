// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync"
)

// The errors of middleware that calls its next out of turn.
var (
	errOver = errors.New("middleware has returned; it can pass the message on before that alone")
	errBusy = errors.New("middleware passed the message on while it is being handled; wait for the former call")
)

// passage is what middleware has under way of one message, which is valid until all
// of it has returned: the middleware may use goroutines of its own, and give up what
// it waits for.
type passage struct {
	single bool // one call at a time

	mu      sync.Mutex
	running int
	over    bool
	idle    chan struct{}        // closed when nothing runs; nil = nobody waits
	cancels []context.CancelFunc // of calls
}

// begin begins a call of next.
func (w *passage) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return errOver
	case w.single && w.running > 0:
		return errBusy
	}
	w.running++
	return nil
}

// end ends a call of next.
func (w *passage) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running--; w.running > 0 {
		return
	}
	w.cancels = nil
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// close lets no further call begin and waits for those that run.
func (w *passage) close() {
	w.mu.Lock()
	w.over = true
	for _, cancel := range w.cancels {
		cancel()
	}
	w.cancels = nil
	if w.running == 0 {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	w.mu.Unlock()
	<-idle
}

// until returns ctx for a call of next, which close ends.
func (w *passage) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over { // it has begun just before
		cancel()
	}
	w.cancels = append(w.cancels, cancel)
	return ctx, cancel
}
