// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// leave takes s off the worker, before its first wait.
func (s *settlement) leave() {
	if s.left {
		return
	}
	s.left = true
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopRunning(s)
	s.index = len(l.active)
	l.active = append(l.active, s)
	if f := s.f; f != nil {
		f.s, f.life = s, s.wait.life
		if by := extension(f.caps()); by > 0 {
			s.wait.extendBy = by
			s.wait.extendAt = f.received.Add(f.prolong)
		}
	}
	if len(s.said.Publishes) == 0 {
		s.drop()
	}
}

// drop gives the frame back: nothing borrows from it any more. l.mu is held.
func (s *settlement) drop() {
	f := s.f
	if f == nil || f.frame == nil {
		return
	}
	f.unframe()
	s.d.Message, s.d.Scope, s.d.Identity, s.d.Position, s.d.Undecodable = core.Message{}, "", nil, nil, nil
	s.said.Publishes, s.said.Failed = nil, nil
}

// unborrow gives the frame back where s has left the worker with it.
func (s *settlement) unborrow() {
	if !s.left {
		return
	}
	s.l.mu.Lock()
	s.drop()
	s.l.mu.Unlock()
}

// land gives the delivery's flight back after the answer to its verdict.
func (s *settlement) land() {
	if s.f == nil {
		return
	}
	s.l.mu.Lock()
	f := s.f
	s.f = nil
	s.l.recycle(f)
	s.l.mu.Unlock()
	s.wait.mu.Lock()
	s.wait.extendAt, s.wait.extendBy = time.Time{}, 0
	s.wait.mu.Unlock()
}

// stopRunning takes s off the list of running handlers. l.mu is held.
func (l *Lane) stopRunning(s *settlement) {
	n := len(l.running) - 1
	last := l.running[n]
	l.running[s.index] = last
	last.index = s.index
	l.running[n] = nil
	l.running = l.running[:n]
}

// finish ends s: the verdict that ends its plan is given, its delivery counted,
// its memory used again. It reports whether s is the worker's again, having
// never left it.
func (s *settlement) finish() bool {
	if s.row != "" && s.forgetOwn() {
		return false
	}
	if s.l.o.Observe != nil && s.decided {
		s.l.o.Observe(&s.c, &s.plan, s.trace)
	}
	l := s.l
	l.mu.Lock()
	s.close()
	k, lost := s.class()
	cutOff := lost && s.did&didCut != 0
	if lost {
		l.counts.Lost++
	}
	if cutOff && !s.waiting {
		l.cutOff++
	}
	if !s.stray {
		l.counts.add(k)
	}
	s.part()
	if s.probe != 0 {
		l.inconclusive(s)
	}
	if l.o.Finished != nil && !s.stray {
		l.mu.Unlock()
		s.tell(k, lost)
		l.mu.Lock()
	}
	if s.waiting {
		l.counts.Waiting--
	} else {
		l.working--
	}
	quiet := l.quiet()
	l.mu.Unlock()
	if s.reserved > 0 || s.waiting {
		l.o.Waiting.leave(s, cutOff && s.waiting)
	}
	left := s.left
	s.reset()
	if left {
		l.spare.Put(s)
	}
	if quiet {
		l.changed()
	}
	return !left
}

// part gives the flight back and takes s off the list that it is on. l.mu is
// held.
func (s *settlement) part() {
	l := s.l
	if f := s.f; f != nil {
		s.f = nil
		l.recycle(f)
	}
	switch {
	case s.waiting:
	case s.left:
		l.stopActive(s)
	default:
		l.stopRunning(s)
	}
}

// close gives the verdict that ends the plan. What goes back since a stop has cut
// its plan is released. l.mu is held.
func (s *settlement) close() {
	f := s.f
	if f == nil {
		return
	}
	if s.final.Count == 0 {
		if s.did&didCut != 0 && !s.putOff {
			f.release()
		}
		return
	}
	switch v := f.state(); {
	case v == core.VoidReturns:
		s.did |= didStale
		s.l.counts.Failed++
	case v == core.VoidLive && !f.gen.lost:
		f.gen.decide(s.final)
	}
}

// stopActive takes s off the list of those that have left the worker. l.mu is
// held.
func (l *Lane) stopActive(s *settlement) {
	n := len(l.active) - 1
	last := l.active[n]
	l.active[s.index] = last
	last.index = s.index
	l.active[n] = nil
	l.active = l.active[:n]
}

// quiet reports whether somebody may care that nothing is in work. l.mu is held.
func (l *Lane) quiet() bool {
	if l.bell != nil {
		return true
	}
	return (l.caughtUp || l.ended || l.stopping) && l.counts.inWork() == 0
}

// class is the count that the delivery ends in, and whether a message is lost
// that did not end in a line about it.
func (s *settlement) class() (k Result, lost bool) {
	dead, unrouted := s.did&didDead != 0, s.did&didUnrouted != 0
	switch {
	case s.did&didPublish != 0 && dead:
		return ResultDeadLettered, unrouted
	case s.did&didPublish != 0:
		return ResultRetried, unrouted
	case s.did&didPark != 0:
		return ResultParked, false
	case s.did&didLose != 0:
		return ResultDropped, true
	case s.did&didStale != 0, s.c.Void == core.VoidReturns:
		return ResultStale, false
	case s.did&didCut != 0:
		return s.cutClass()
	case s.did&didRequeue != 0:
		return ResultRetried, false
	}
	return s.plainClass(), false
}

// cutClass is the count of a plan that a stop cut.
func (s *settlement) cutClass() (Result, bool) {
	switch {
	case s.stored != "":
		return ResultParked, false
	case s.lossy():
		return ResultDropped, true
	default:
		return ResultReleased, false
	}
}

// lossy reports whether nothing but s has the message.
func (s *settlement) lossy() bool {
	if s.f == nil || s.f.state() == core.VoidGone {
		return true
	}
	return s.f.letGo() == core.VoidGone
}

// plainClass is the count of a plan without a copy that was carried out.
func (s *settlement) plainClass() Result {
	settled := s.did&didSettle != 0 || s.c.Void == core.VoidGone
	returns := s.c.Source.Unsettled != core.UnsettledLost
	switch k := s.c.Outcome.Kind; {
	case s.plan.Notes&core.NoteOverCap != 0 && settled:
		return ResultDropped
	case !settled, k == core.OutcomeLeave, k == core.OutcomeFailFast:
		return ResultReleased
	case k == core.OutcomeAck:
		return ResultAcked
	case s.released && returns:
		return ResultReleased
	default:
		return ResultDropped
	}
}

// reset forgets what one life held.
func (s *settlement) reset() {
	w := &s.wait
	w.mu.Lock()
	w.life++
	w.kind, w.extendAt, w.extendBy = waitNone, time.Time{}, 0
	w.mu.Unlock()
	s.f, s.key, s.left, s.over, s.waiting, s.released, s.marked, s.stray = nil, nil, false, false, false, false, false, false
	s.putOff = false
	s.decided, s.hush, s.probe, s.clone = false, false, 0, nil
	s.d, s.said, s.reason, s.row, s.bad, s.failed = Delivery{}, Said{}, nil, "", nil, time.Time{}
	s.did, s.final, s.fault, s.trace = 0, frame.VerdictRun{}, nil, nil
	s.out, s.stored, s.reserved = frame.Outgoing{}, "", 0
	s.tries, s.resend, s.keeping, s.acking = 0, false, false, false
}
