// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"

	"github.com/longshore-go/longshore/core"
)

// ErrExited is the cause of a handler that did not return.
var ErrExited = errors.New("handler ended its goroutine with runtime.Goexit; " +
	"t.FailNow and t.Fatal do so: call them in the test's own goroutine")

// worker begins one delivery after the other. A lane starts one when there is
// something to begin and none is idle, up to LaneOptions.Workers; they end with
// the lane.
type worker struct {
	l     *Lane
	s     *settlement // in hand
	key   *key        // of the delivery in hand; nil = none
	batch *batch      // nil = deliveries are handled one by one
}

// serve is a worker's goroutine.
func (l *Lane) serve() {
	w := &worker{l: l, s: l.settlement()}
	if l.o.Batch != nil {
		w.batch = &batch{}
	}
	w.serve()
}

// settlement returns one that is free.
func (l *Lane) settlement() *settlement {
	s, _ := l.spare.Get().(*settlement)
	return s
}

// serve begins what there is until the lane is closed. Where a handler ends the
// goroutine another one takes over, so that the lane does not stand still.
func (w *worker) serve() {
	defer func() {
		switch {
		case w.s.handling:
			at := stack()
			w.l.goroutines.Go(func() { w.takeOver(at) })
		case w.batch != nil && w.batch.handling:
			at := stack()
			w.l.goroutines.Go(func() { w.exited(at) })
		}
	}()
	if w.batch != nil {
		for w.gather() {
			w.handle()
		}
		return
	}
	for w.next() {
		if left := w.s.begin(); left {
			w.s = w.l.settlement()
		}
	}
}

// next waits for a delivery and takes it in hand; false says that the lane is
// closed.
func (w *worker) next() bool {
	l := w.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.key != nil {
		l.keys.free(w.key)
		w.key = nil
	}
	for !l.closed {
		if l.asks(nil) {
			continue
		}
		if f := l.take(nil); f != nil {
			l.start(w.s, f)
			w.key = w.s.key
			l.rouse()
			return true
		}
		w.idle()
	}
	return false
}

// idle waits until there may be something to begin. l.mu is held, but for the
// wait.
func (w *worker) idle() {
	l := w.l
	l.idle++
	l.mu.Unlock()
	select {
	case <-l.work:
	case <-l.closing:
	}
	l.mu.Lock()
	l.idle--
}

// takeOver goes on with a delivery whose handler has ended the worker.
func (w *worker) takeOver(stack string) {
	s, l := w.s, w.l
	s.handling = false
	s.said = saidExited()
	if l.o.Exited != nil {
		s.said = l.o.Exited(l.handling, &s.d)
	}
	s.said.Stack = stack
	s.unsay()
	if left := s.goOn(); left {
		w.s = l.settlement()
	}
	w.serve()
}

// saidExited is what a handler has said that ended its goroutine, where nobody
// says it otherwise.
func saidExited() Said {
	return Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}, Err: ErrExited}
}
