// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

const (
	// cancelShare and cancelMost say how long before the end of a drain limit
	// handlers are cancelled: its last tenth, a second at most.
	cancelShare = 10
	cancelMost  = time.Second
	// endLimit bounds the wait for a plugin's answer to Stop, and for the end of
	// the stream after the half-close.
	endLimit = 5 * time.Second
	// partingLimit bounds the latter when the drain limit is over.
	partingLimit = 200 * time.Millisecond
	// shownRunning is how many deliveries Left names.
	shownRunning = 16
)

// StopIntake asks the plugin for no more deliveries and lets those go that no
// handler has begun, except on sources that would lose them. Deliveries that are
// held and come back by themselves, and kept ones, are released.
func (l *Lane) StopIntake() {
	l.mu.Lock()
	if l.stopping {
		l.mu.Unlock()
		return
	}
	l.stopping = true
	if g := l.now; g != nil {
		g.stop = true
		signal(g.wake)
	}
	l.tellSeek(l.seeking, ErrDown)
	l.sweep()
	l.rouse()
	all := l.actives()
	l.mu.Unlock()
	for _, a := range all {
		a.s.stopped(a.life)
	}
	l.changed()
}

// actives are those that have left the worker. l.mu is held.
func (l *Lane) actives() []news {
	all := make([]news, 0, len(l.active))
	for _, s := range l.active {
		all = append(all, news{s: s, life: s.wait.life})
	}
	return all
}

// stopped ends waits that a stop makes pointless: a hold of a delivery that
// comes back by itself, and the tries for one that is kept, which is released.
func (s *settlement) stopped(life uint64) {
	l := s.l
	l.mu.Lock()
	stopping := l.stopping
	l.mu.Unlock()
	if !stopping {
		return
	}
	k, ok := s.claimIf(life, func(k waitKind) bool {
		switch {
		case k == waitHold:
			return s.f != nil && s.f.state() == core.VoidLive && s.f.letGo() == core.VoidReturns
		case k == waitAgain && s.keeping:
			return true
		case k == waitReceipt && s.keeping:
			return s.wait.box.take(s.wait.p)
		default:
			return false
		}
	})
	switch {
	case !ok:
	case k == waitHold:
		s.resume(core.ResultCut)
	default:
		s.released = true
		if s.stored == "" && s.lossy() {
			s.forgone()
		}
		if s.f != nil {
			s.final = frame.VerdictRun{First: s.f.id, Count: 1, Kind: core.VerdictRelease}
		}
		s.resume(core.ResultDone)
	}
}

// Drain stops intake and waits until running handlers have returned, what they
// said is settled, and the stream has ended. Handlers are cancelled shortly
// before ctx's deadline. It returns what was cut off when ctx ended first.
// Copies that wait are not waited for: that is Waiting.Drain.
func (l *Lane) Drain(ctx context.Context) Left {
	l.StopIntake()
	stop := l.cancelBefore(ctx)
	defer stop()
	ending, cancel := context.WithTimeout(ctx, endLimit)
	_ = l.wait(ending, func() bool { return l.now == nil || l.now.ended }) // a plugin that does not answer is not waited for
	cancel()
	left := Left{Endpoint: l.o.Endpoint, Subscription: l.o.Subscription}
	limit := endLimit
	if l.wait(ctx, func() bool { return l.working == 0 && l.backlog() == 0 }) != nil {
		l.cancelHandlers()
		l.cutOffWork(&left)
		limit = partingLimit
	}
	l.part(limit)
	l.flushLines()
	l.mu.Lock()
	left.Lost, l.cutOff = l.cutOff, 0
	l.tell(&left)
	l.mu.Unlock()
	if left.Lost > 0 {
		abandoned(l.log, left.Lost)
	}
	return left
}

// cancelBefore cancels the handlers shortly before ctx's deadline.
func (l *Lane) cancelBefore(ctx context.Context) func() {
	end, ok := ctx.Deadline()
	if !ok {
		return func() {}
	}
	limit := time.Until(end)
	t := time.AfterFunc(limit-min(cancelMost, limit/cancelShare), l.cancelHandlers)
	return func() { t.Stop() }
}

// cancelHandlers ends the handlers' context. What they say from now on is no
// verdict, unless it is an ack.
func (l *Lane) cancelHandlers() {
	l.cancelled.Store(true)
	l.letGo()
	l.mu.Lock()
	swept := l.sweep() // what is left is not begun any more
	l.mu.Unlock()
	if swept {
		l.changed()
	}
}

// cutOffWork ends what is still in work, and says what it was.
func (l *Lane) cutOffWork(left *Left) {
	l.mu.Lock()
	l.tell(left)
	for _, s := range l.running {
		left.Handlers++
		if len(left.Running) < shownRunning {
			item := s.f.item()
			left.Running = append(left.Running, describe(item))
		}
	}
	all := l.actives()
	l.mu.Unlock()
	left.Settlements = len(all)
	for _, a := range all {
		a.s.cut(a.life, cutAll)
	}
}

// tell adds what has been cut off at handlers so far, once: what returns later
// is one that did not return. l.mu is held.
func (l *Lane) tell(left *Left) {
	if l.parted {
		return
	}
	l.parted = true
	left.Cancelled, left.Unhandled = l.parting.Cancelled, l.parting.Unhandled
	left.Running = append(left.Running, l.parting.Running...)
}

// describe names a delivery for people.
func describe(d *frame.Delivery) string {
	name := strings.Clone(cut(d.Message.Name, shownText))
	if len(d.Position) == 0 {
		return fmt.Sprintf("%s, delivery %d", name, d.ID)
	}
	return fmt.Sprintf("%s at %s", name, Printable(cut(string(d.Position), shownText)))
}

// Printable writes a transport's position for people, in hex where it is no text.
func Printable(position string) string {
	if utf8.ValidString(position) && strconv.CanBackquote(position) {
		return position
	}
	return fmt.Sprintf("%x", position)
}

// part sends the last verdicts, half-closes the stream and waits for its end.
// What is with a handler that does not return is released.
func (l *Lane) part(limit time.Duration) {
	l.mu.Lock()
	g := l.now
	if g != nil {
		for _, s := range l.running {
			if s.f.gen == g && s.f.release() {
				s.f.void.Store(uint32(core.VoidReturns)) // whatever it still says
			}
		}
		g.half = true
		signal(g.wake)
	}
	l.mu.Unlock()
	if g == nil {
		return
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-g.over:
	case <-t.C:
		g.lose(context.DeadlineExceeded)
	}
}

// Close ends the lane at once: no verdict is sent any more and what is in work
// is given up. It waits for the lane's goroutines, except for handlers that do
// not return when their context ends, which it waits for until ctx ends.
// Waiting and the outboxes must not be closed before.
func (l *Lane) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
		l.o.Waiting.sharers.Add(-1)
	}
	l.stopping = true
	g := l.now
	l.mu.Unlock()
	l.cancelHandlers()
	l.stopCalls()
	if g != nil {
		g.lose(nil)
	}
	l.mu.Lock()
	all := l.actives()
	l.o.Waiting.clock.unset(&l.pace.alarm)
	l.o.Waiting.clock.unset(&l.circuit.alarm)
	if !l.holdsAt.IsZero() {
		l.o.Waiting.clock.unset(&l.holds)
	}
	l.mu.Unlock()
	for _, a := range all {
		a.s.cut(a.life, cutAll)
	}
	l.flushLines()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.goroutines.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close subscription %q: a handler does not return: %w", l.o.Subscription, ctx.Err())
	}
}
