// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
)

// wait is what a settlement waits for. Several may bring news at once (a
// receipt, the clock, Void, a stop): the first one claims it, and what comes
// later finds another token or another life. Whoever begins a wait may not touch
// the settlement after that. Its lock is taken before those of lanes, outboxes
// and the clock.
type wait struct {
	alarm alarm
	life  uint64 // changes only while nobody can bring news

	mu       sync.Mutex
	kind     waitKind
	token    uint64
	armed    bool
	due      time.Time // zero = the clock does not end it
	extendAt time.Time // of the next EXTEND; zero = none
	extendBy time.Duration
	box      *Outbox // of waitReceipt
	p        *publish
	sends    *sends // of waitSends
}

// waitKind is the kind of news that a settlement waits for.
type waitKind uint8

const (
	waitNone    waitKind = iota
	waitSends            // the receipts of what the handler publishes
	waitReceipt          // the receipt of a copy
	waitAgain            // the next try of a copy
	waitHold             // the end of a hold
	waitAnswer           // the answer to a verdict
	waitJournal          // a call of the journal
)

// await begins a wait, which the clock ends at due unless that is zero, and
// returns its token. What brings the news must be started after it.
func (s *settlement) await(k waitKind, due time.Time) uint64 {
	return s.offer(k, due, nil, nil)
}

// offer is await for the receipt of p, which box is given after it.
func (s *settlement) offer(k waitKind, due time.Time, box *Outbox, p *publish) uint64 {
	s.wait.mu.Lock()
	defer s.wait.mu.Unlock()
	return s.start(k, due, box, p)
}

// start is offer with wait.mu held.
func (s *settlement) start(k waitKind, due time.Time, box *Outbox, p *publish) uint64 {
	w := &s.wait
	w.kind, w.due, w.box, w.p = k, due, box, p
	w.token++
	next := w.next()
	w.armed = !next.IsZero()
	if w.armed {
		s.l.o.Waiting.clock.set(&w.alarm, next)
	}
	return w.token
}

// next is when the clock is to ring; zero = never.
func (w *wait) next() time.Time {
	if w.due.IsZero() || (!w.extendAt.IsZero() && w.extendAt.Before(w.due)) {
		return w.extendAt
	}
	return w.due
}

// claim ends the wait with the given token. It reports false when somebody else
// has.
func (s *settlement) claim(token uint64) bool {
	w := &s.wait
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kind == waitNone || w.token != token {
		return false
	}
	s.end()
	return true
}

// end ends the wait. wait.mu is held.
func (s *settlement) end() waitKind {
	w := &s.wait
	k := w.kind
	w.kind = waitNone
	w.box, w.p, w.sends = nil, nil, nil
	if w.armed {
		w.armed = false
		s.l.o.Waiting.clock.unset(&w.alarm)
	}
	return k
}

// claimIf ends the wait of the given life if want says so.
func (s *settlement) claimIf(life uint64, want func(waitKind) bool) (waitKind, bool) {
	w := &s.wait
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kind == waitNone || w.life != life || !want(w.kind) {
		return waitNone, false
	}
	return s.end(), true
}

// ring is the clock's: the end of a wait, or the time for an EXTEND.
func (s *settlement) ring() {
	w, now := &s.wait, time.Now()
	w.mu.Lock()
	if w.kind == waitNone || !w.armed {
		w.mu.Unlock()
		return
	}
	if !w.extendAt.IsZero() && !now.Before(w.extendAt) {
		w.extendAt = now.Add(w.extendBy / 2)
		s.extend()
	}
	if w.due.IsZero() || now.Before(w.due) {
		s.l.o.Waiting.clock.set(&w.alarm, w.next())
		w.mu.Unlock()
		return
	}
	w.armed = false // it has rung
	box, p, sends := w.box, w.p, w.sends
	k := s.end()
	w.mu.Unlock()
	switch k {
	case waitHold:
		s.resume(core.ResultDone)
	case waitAgain:
		s.next()
	case waitReceipt:
		s.overdue(box.take(p))
	case waitSends:
		sends.giveUp()
		s.sent(sends)
	default:
	}
}

// next makes the next try of a copy.
func (s *settlement) next() {
	if r, waits := s.try(); !waits {
		s.resume(r)
	}
}

// extend prolongs the delivery's hold. wait.mu is held.
func (s *settlement) extend() {
	l, f := s.l, s.f
	if f == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.gen.extend(f, s.wait.extendBy)
}

// maxExtends is how many EXTEND verdicts of one delivery may be unanswered: a
// plugin that does not answer gets no more.
const maxExtends = 2

// voided tells s that its delivery has ended without a verdict. One that comes
// back is not copied: what has not left yet does not leave. A delivery that is
// settled by now is no concern of it.
func (s *settlement) voided(life uint64, v core.Void) {
	if v != core.VoidReturns {
		return
	}
	if _, ok := s.claimIf(life, func(k waitKind) bool {
		switch {
		case s.f == nil:
			return false
		case k == waitHold, k == waitAgain:
			return true
		default:
			return k == waitReceipt && s.wait.box.take(s.wait.p)
		}
	}); ok {
		s.resume(core.ResultStaleReturns)
	}
}

// answered tells s the answer to its verdict.
func (s *settlement) answered(life uint64, r core.Result, f *core.Fault) {
	if _, ok := s.claimIf(life, func(k waitKind) bool { return k == waitAnswer }); !ok {
		return
	}
	s.fault = f
	s.land()
	if s.acking {
		s.acked(r)
		return
	}
	s.resume(r)
}

// unanswered goes on where a verdict was sent and its plugin died before the
// answer. What must not come back counts as accepted while nothing of the plan
// is out: the copy that follows is then a double at worst, where taking the
// delivery for one that returns could lose it. It reports false where this is
// not so.
func (s *settlement) unanswered(life uint64) bool {
	if _, ok := s.claimIf(life, func(k waitKind) bool {
		return k == waitAnswer && !s.acking && s.did&didPublish == 0 &&
			(s.step.Do == core.ActAck || s.step.Do == core.ActReject) && !s.step.End
	}); !ok {
		return false
	}
	s.land()
	s.resume(core.ResultDone)
	return true
}

// recheck looks for what may have come between the decision to wait and the
// wait itself.
func (s *settlement) recheck(token uint64, f *flight) {
	if f == nil {
		return
	}
	w := &s.wait
	w.mu.Lock()
	if w.kind == waitNone || w.token != token {
		w.mu.Unlock()
		return
	}
	life := w.life
	v := f.state()
	w.mu.Unlock()
	if v != core.VoidLive {
		s.voided(life, v)
	}
	s.stopped(life)
}
