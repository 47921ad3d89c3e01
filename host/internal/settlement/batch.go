// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"runtime/debug"
	"time"

	"github.com/longshore-go/longshore/core"
)

// batch is what a worker gathers and handles in one call. While it gathers, its
// items, keys and draining are guarded by the lane's lock, and a sweep may take
// items out; after that it is the worker's alone.
type batch struct {
	items    []*settlement // opened; they are among the running ones
	since    time.Time     // of the first of them
	keys     []*key        // that it has
	draining *key          // one of them whose waiting deliveries come first

	ds       []*Delivery
	said     []Said
	handling bool // its handler runs
	timer    *time.Timer
}

// drains reports whether a key's deliveries come next.
func (b *batch) drains() bool { return b != nil && b.draining != nil && b.draining.first != nil }

// gather makes a batch; false says that the lane is closed.
func (w *worker) gather() bool {
	l, b := w.l, w.batch
	l.mu.Lock() // without defer: Open may end the goroutine
	for !l.closed {
		if l.gathering != b {
			if l.gathering != nil || !l.ready() || l.shut() {
				w.idle()
				continue
			}
			l.gathering = b
		}
		if len(b.items) < l.o.Batch.Max && l.asks(b) {
			continue
		}
		if len(b.items) < l.o.Batch.Max {
			if f := l.take(b); f != nil {
				l.start(w.s, f)
				l.mu.Unlock()
				w.open()
				l.mu.Lock()
				continue
			}
		}
		wait := l.batchWait(b)
		if len(b.items) == 0 || wait <= 0 && !l.barred() {
			l.gathering, b.draining = nil, nil
			if len(b.items) == 0 { // all of it was swept out, or was no part of a batch
				l.freeKeys(b)
				continue
			}
			for _, k := range b.keys {
				k.batch = nil
			}
			for _, s := range b.items { // that have gathered before the breaker opened
				l.circuit.probe(s)
			}
			l.rouse()
			l.mu.Unlock()
			return true
		}
		w.wait(wait)
	}
	l.mu.Unlock()
	return false
}

// batchWait is how long the batch still waits for more; 0 or less = it does not.
// l.mu is held.
func (l *Lane) batchWait(b *batch) time.Duration {
	if len(b.items) >= l.o.Batch.Max || l.stopping || l.circuit.state == CircuitHalfOpen {
		return 0
	}
	if g := l.now; g != nil && (g.ended || g.count >= g.window.Messages || g.bytes >= g.window.Bytes) {
		return 0 // nothing more can come
	}
	return time.Until(b.since.Add(l.o.Batch.Wait))
}

// wait waits for more for the batch, at most that long; where the lane is shut,
// as long as it is. l.mu is held, but for the wait.
func (w *worker) wait(most time.Duration) {
	l, b := w.l, w.batch
	var late <-chan time.Time
	if most > 0 {
		if b.timer == nil {
			b.timer = time.NewTimer(most)
		} else {
			b.timer.Reset(most)
		}
		late = b.timer.C
	}
	l.mu.Unlock()
	select {
	case <-l.more:
	case <-late:
	case <-l.closing:
	}
	l.mu.Lock()
}

// open opens the delivery in hand and puts it into the batch, or settles it
// beside it.
func (w *worker) open() {
	l, b, s := w.l, w.batch, w.s
	s.open()
	ok := core.Admit(&l.o.Policy, &s.c)
	if ok {
		s.handling = true
		s.said, ok = l.o.Batch.Open(l.handling, &s.d)
		s.handling = false
	}
	if !ok {
		s.unsay()
		if left := s.goOn(); left {
			w.s = l.settlement()
		}
		return
	}
	w.s = l.settlement()
	l.mu.Lock()
	if b.items = append(b.items, s); len(b.items) == 1 {
		b.since = time.Now()
	}
	swept := l.sweepGathered(l.fate()) // by what has become of it meanwhile
	l.mu.Unlock()
	if swept {
		l.changed()
	}
}

// sweepGathered ends those of the batch that gathers that end says it has ended.
// What Open has made of them is left to the garbage collector. l.mu is held.
func (l *Lane) sweepGathered(end func(*flight) bool) bool {
	b := l.gathering
	if b == nil {
		return false
	}
	left := b.items[:0]
	for _, s := range b.items {
		if !end(s.f) {
			left = append(left, s)
			continue
		}
		s.f = nil
		l.working--
		l.stopRunning(s)
		l.inconclusive(s)
	}
	some := len(left) < len(b.items)
	clear(b.items[len(left):])
	b.items = left
	if some {
		signal(l.more)
	}
	return some
}

// freeKeys is the end of what the batch has. l.mu is held.
func (l *Lane) freeKeys(b *batch) {
	for _, k := range b.keys {
		l.keys.free(k)
	}
	clear(b.keys)
	b.keys = b.keys[:0]
}

// handle calls the batch's handler and carries out what it says.
func (w *worker) handle() {
	l, b := w.l, w.batch
	for _, s := range b.items {
		b.ds = append(b.ds, &s.d)
	}
	b.said = append(b.said, make([]Said, len(b.ds))...)
	b.handling = true
	n := l.o.Batch.Handle(l.handling, b.ds, b.said)
	b.handling = false
	if n >= 0 && n != len(b.ds) {
		l.wrongLength(len(b.ds), n)
	}
	w.settle()
}

// settle starts the settlements of the batch in order. A panic of the batch's
// handler is told once.
func (w *worker) settle() {
	l, b := w.l, w.batch
	for i, s := range b.items {
		s.said = b.said[i]
		s.hush = i > 0 && s.said.Stack != "" && s.said.Stack == b.said[i-1].Stack
		s.unsay()
		if left := s.goOn(); !left {
			l.spare.Put(s)
		}
	}
	clear(b.items)
	clear(b.ds)
	clear(b.said)
	b.items, b.ds, b.said = b.items[:0], b.ds[:0], b.said[:0]
	l.mu.Lock()
	l.freeKeys(b)
	l.rouse()
	l.mu.Unlock()
}

// exited goes on with a batch whose handler has ended the worker.
func (w *worker) exited(stack string) {
	l, b := w.l, w.batch
	b.handling = false
	for i := range b.said {
		b.said[i] = saidExited()
	}
	if l.o.Batch.Exited != nil {
		l.o.Batch.Exited(l.handling, b.ds, b.said)
	}
	for i := range b.said {
		b.said[i].Stack = stack
	}
	w.settle()
	w.serve()
}

// stack is the stack of a handler that ends its goroutine.
func stack() string { return string(debug.Stack()) }
