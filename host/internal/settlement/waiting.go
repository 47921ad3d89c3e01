// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// The bounds of waiting copies (D3), and what one counts beside its message:
// its plan and its place in the lists.
const (
	waitingMessages = 100_000
	waitingBytes    = 256 << 20
	waitingOverhead = 2 << 10
)

// WaitingOptions bound the waiting copies of a host.
type WaitingOptions struct {
	Logger   *slog.Logger
	Messages int   // default 100,000
	Bytes    int64 // default 256 MiB, 2 KiB a copy beside its message included
}

// Waiting holds the delayed copies of a host, and the clock of everything that
// waits. A copy counts from the decision on until it is published, parked or
// lost.
type Waiting struct {
	o     WaitingOptions
	clock *clock

	mu       sync.Mutex
	room     room // taken
	copies   []*settlement
	lost     map[WaitingCopies]int // cut off, not said yet
	draining bool
	bell     chan struct{} // closed when there is more room; nil = nobody waits

	restoring sync.WaitGroup
	closing   context.CancelFunc
	life      context.Context
	lanes     map[WaitingCopies]*Lane // of copies of former runs
}

// WaitingCopies are the waiting copies of one subscription.
type WaitingCopies struct {
	Endpoint     string
	Subscription string
	Count        int
}

// NewWaiting returns an empty one. It starts its clock's goroutine.
func NewWaiting(o WaitingOptions) *Waiting {
	if o.Messages <= 0 {
		o.Messages = waitingMessages
	}
	if o.Bytes <= 0 {
		o.Bytes = waitingBytes
	}
	w := &Waiting{
		o: o, clock: newClock(),
		lost: make(map[WaitingCopies]int), lanes: make(map[WaitingCopies]*Lane),
	}
	w.life, w.closing = context.WithCancel(context.Background())
	return w
}

// Len returns the number of copies that wait or are being published.
func (w *Waiting) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.copies)
}

// List returns what waits or is being published, by subscription.
func (w *Waiting) List() []WaitingCopies {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := make(map[WaitingCopies]int)
	for _, s := range w.copies {
		count[of(s)]++
	}
	return listed(count)
}

// of names the subscription of a copy.
func of(s *settlement) WaitingCopies {
	return WaitingCopies{Endpoint: s.l.o.Endpoint, Subscription: s.l.o.Subscription}
}

// listed sorts counts by subscription.
func listed(count map[WaitingCopies]int) []WaitingCopies {
	out := make([]WaitingCopies, 0, len(count))
	for c, n := range count {
		c.Count = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b WaitingCopies) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Subscription, b.Subscription))
	})
	return out
}

// reserve takes room for a copy of n bytes. It reports false when there is none.
func (w *Waiting) reserve(n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.room.messages >= w.o.Messages || w.room.bytes >= w.o.Bytes {
		return false
	}
	w.room.messages++
	w.room.bytes += n
	return true
}

// release gives room back.
func (w *Waiting) release(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.messages--
	w.room.bytes -= n
	w.ring()
}

// ring tells who waits for room, or for the end of the copies. w.mu is held.
func (w *Waiting) ring() {
	if w.bell != nil {
		close(w.bell)
		w.bell = nil
	}
}

// until waits until ready, which is asked with w.mu held, says true.
func (w *Waiting) until(ctx context.Context, ready func() bool) error {
	for {
		w.mu.Lock()
		if ready() {
			w.mu.Unlock()
			return nil
		}
		if w.bell == nil {
			w.bell = make(chan struct{})
		}
		bell := w.bell
		w.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter lists a copy.
func (w *Waiting) enter(s *settlement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.reserved == 0 {
		s.reserved = waitingOverhead
		w.room.messages++
		w.room.bytes += s.reserved
	}
	s.index = len(w.copies)
	w.copies = append(w.copies, s)
}

// leave gives the room of s back, and takes it off the list where it is on it.
func (w *Waiting) leave(s *settlement, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lost {
		w.lost[of(s)]++
	}
	w.room.messages--
	w.room.bytes -= s.reserved
	defer w.ring()
	if !s.waiting {
		return
	}
	n := len(w.copies) - 1
	last := w.copies[n]
	w.copies[s.index] = last
	last.index = s.index
	w.copies[n] = nil
	w.copies = w.copies[:n]
}

// reserve takes room for a waiting copy of this delivery before the plan is
// made, so that the plan knows whether there is any.
func (s *settlement) reserve() {
	n := int64(frame.Weight(&s.d.Message)) + waitingOverhead
	if s.l.o.Waiting.reserve(n) {
		s.reserved = n
	} else {
		s.c.Full = true
	}
}

// later waits for the time of a delayed copy, among the waiting copies.
func (s *settlement) later() (core.Result, bool) {
	if s.resend {
		return s.publish()
	}
	s.leave()
	s.enterWaiting()
	w, life := s.l.o.Waiting, s.wait.life
	s.await(waitLater, time.Now().Add(s.step.Delay))
	if w.stops() {
		s.cut(life, cutUnawaited)
	}
	return 0, true
}

// enterWaiting moves s from the lane's work to the waiting copies.
func (s *settlement) enterWaiting() {
	l := s.l
	l.mu.Lock()
	l.working--
	l.stopActive(s)
	l.counts.Waiting++
	f := s.f
	s.f = nil
	if f != nil {
		l.recycle(f)
	}
	quiet := l.bell != nil
	l.mu.Unlock()
	s.waiting = true
	l.o.Waiting.enter(s)
	if quiet {
		l.changed()
	}
}

// begun is the clock's: the copy's time has come.
func (s *settlement) begun() {
	s.startTries()
	s.next()
}
