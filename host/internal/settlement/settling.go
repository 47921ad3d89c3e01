// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// settlement carries one delivery from its handler to the end of its plan. The
// worker begins it. At the first step that waits it leaves the worker and waits
// for one piece of news at a time; whoever brings it claims the wait and carries
// the plan on. Its memory is used again: life tells its lives apart.
type settlement struct {
	l      *Lane
	f      *flight // nil once its verdict is answered, and for copies of former runs
	left   bool    // it left the worker
	index  int     // its place among the running ones, then among the active ones
	key    *key    // of the delivery, while the worker has it
	over   bool    // its plan is carried out, but for the row of its delivery
	stray  bool    // a copy of a former run: it is no delivery of this lane
	putOff bool    // its handler has put it off, which is no attempt, and a stop lets it go

	handling bool    // its handler runs
	hush     bool    // its panic is told by another one of its batch
	probe    uint64  // the epoch of the circuit breaker that it is a probe of; 0 = none
	decided  bool    // it has a plan
	clone    *cloned // of the delivery, for Finished

	generation, id uint64 // of the delivery, for the log

	d      Delivery
	said   Said
	reason error     // why a computed destination was refused
	failed time.Time // first, under a MaxElapsed; zero = unknown
	row    string
	bad    []byte // a count header that is no number

	c     core.Case
	of    *core.Case // what c is but for the delivery's own; nil = nothing
	plan  core.Plan
	cur   core.Cursor
	step  core.Step
	trace []core.Done
	did   did
	final frame.VerdictRun // a verdict that ends the plan and whose answer nobody waits for
	fault *core.Fault      // of the last receipt or answer

	out      frame.Outgoing // the copy
	stored   string         // its row
	released bool           // a release was given
	marked   bool           // its last header is the row's id
	reserved int64          // bytes of room among the waiting copies
	waiting  bool           // it counts among them

	tries    int
	deadline time.Time // of the tries of one copy; zero = none
	resend   bool      // the same step again, after an unknown receipt
	keeping  bool      // tried for the life of the process
	acking   bool      // kept, confirmed, and being acked

	wait wait
}

// did is a set of what was done.
type did uint16

const (
	didSettle did = 1 << iota // a verdict went through
	didRequeue
	didPublish
	didDead // didPublish or didPark, to the dead letter
	didPark
	didStore
	didLose
	didStale
	didCut
	didUnrouted // didPublish, to where nobody reads
)

func newSettlement(l *Lane) *settlement {
	s := &settlement{l: l}
	s.wait.alarm.ring = s.ring
	return s
}

// begin runs the handler and carries out what can be carried out at once. It
// reports whether s has left the worker, who may not touch it any more then.
func (s *settlement) begin() bool {
	s.open()
	if core.Admit(&s.l.o.Policy, &s.c) {
		s.handling = true
		said := s.l.o.Handle(s.l.handling, &s.d)
		s.handling = false
		if s.direct(&said) {
			s.ack()
			return false
		}
		s.said = said
		s.unsay()
	}
	return s.goOn()
}

// unsay takes back what a handler has said that a stop has cancelled: it is no
// verdict.
func (s *settlement) unsay() {
	if s.l.cancelled.Load() && (s.said.Err != nil || s.said.Outcome.Kind != core.OutcomeAck) {
		s.said = Said{}
		s.l.mu.Lock()
		s.l.parting.Cancelled++
		s.l.parting.name(s.f)
		s.l.mu.Unlock()
	}
}

// goOn goes on with what the handler has said, as begin.
func (s *settlement) goOn() bool {
	if s.direct(&s.said) {
		s.said = Said{}
		s.ack()
		return false
	}
	if s.said.Snooze && s.snooze() {
		return false
	}
	if len(s.said.Publishes) > 0 {
		s.send()
		return true
	}
	return !s.decide()
}

// open makes the delivery that the handler sees, and the case but for the
// outcome.
func (s *settlement) open() {
	l, f := s.l, s.f
	item := f.item()
	s.generation, s.id = f.gen.a.Number, f.id
	s.begins(&f.gen.cases[f.profile])
	d := &s.d // which is empty
	d.Message, d.Scope, d.Identity, d.Position = item.Message, item.Scope, item.Identity, item.Position
	d.Received, d.Snoozes = f.received, f.snoozes
	if item.Undecodable != nil {
		d.Undecodable = foreignFault(item.Undecodable)
	}
	if f.unkeyed != nil {
		d.Unkeyed = f.unkeyed
	}
	if item.PublishedAt != 0 {
		s.d.Published = time.Unix(0, item.PublishedAt)
	}
	if l.o.Policy.Backoff {
		s.d.Returned = s.returns()
	}
	s.readHeaders()
	if s.c.Source.Counts == core.CountNative {
		s.c.Attempt.Native = item.Attempt
	}
	s.d.Attempt = s.c.Attempt
	s.d.Number = s.c.Attempt.Number(s.c.Source, s.c.Retry.State != core.RouteNone)
	s.d.Last = l.o.Policy.MaxAttempts > 0 && s.d.Number >= uint64(l.o.Policy.MaxAttempts)
	if s.bad != nil {
		l.warn(core.LogCount, "count header is no number, read as 0",
			"attempt", s.d.Number, "value", cut(string(s.bad), shownText))
	}
}

// decide makes the plan and carries out what can be carried out at once. It
// reports whether s is the worker's again, with the plan carried out.
func (s *settlement) decide() bool {
	l, f, c := s.l, s.f, &s.c
	s.judged()
	c.Outcome = s.said.Outcome
	c.Void = f.state()
	if c.Outcome.Kind != core.OutcomeAck {
		c.Held = time.Since(f.received)
		c.Floor = s.floor()
	}
	s.budget()
	if c.Outcome.Kind == core.OutcomeRetryAfter && c.Outcome.After > 0 && c.Retry.State != core.RouteNone {
		s.reserve()
	}
	if c.Outcome.Kind != core.OutcomeRetry && l.floors.any.Load() && len(s.d.Identity) > 0 {
		l.mu.Lock()
		if !s.counted() {
			l.floors.forget(s.d.Identity)
		}
		l.mu.Unlock()
	}
	core.Decide(&l.o.Policy, c, &s.plan)
	if l.o.RetryFunc != nil && targets(&s.plan, core.TargetRetry) {
		s.route()
		core.Decide(&l.o.Policy, c, &s.plan)
	}
	if s.counted() {
		s.countReturn()
	}
	s.decided = true
	s.keepMessage()
	if s.reserved > 0 && !waits(&s.plan) {
		l.o.Waiting.release(l, s.reserved)
		s.reserved = 0
	}
	s.make()
	s.unborrow()
	s.cur = s.plan.Start()
	return s.walk(core.ResultDone)
}

// route asks for the destination of copies of this delivery.
func (s *settlement) route() {
	r, err := s.l.o.RetryFunc(&s.d)
	if err != nil {
		r.State, s.reason = core.RouteRefused, err
	}
	s.c.Retry, s.of = r, nil
}

// walk carries out steps until one of them waits. It reports whether s is the
// worker's again, having never left it; else nothing of s may be touched any
// more.
func (s *settlement) walk(r core.Result) bool {
	for {
		step, ok := s.cur.Next(r)
		if !ok {
			return s.finish()
		}
		s.step = step
		var waits bool
		if r, waits = s.do(); waits {
			return false
		}
		s.record(r)
	}
}

// resume goes on after a wait.
func (s *settlement) resume(r core.Result) {
	s.record(r)
	s.walk(r)
}

// do begins the step in hand. It returns what became of it, or true when that
// will be told to resume.
func (s *settlement) do() (core.Result, bool) {
	switch s.step.Do {
	case core.ActLog:
		s.line()
	case core.ActAck, core.ActRequeue, core.ActReject, core.ActRelease:
		s.released = s.step.Do == core.ActRelease
		return s.verdict()
	case core.ActHold:
		return s.hold()
	case core.ActKeep:
		return s.keep()
	case core.ActPublish:
		return s.publish()
	case core.ActPublishLater:
		return s.later()
	case core.ActStore, core.ActForget, core.ActPark:
		return s.write()
	case core.ActStop:
		s.l.fail(s.failure())
	default:
	}
	return core.ResultDone, false
}

// failure is the error of a plan that stops the host.
func (s *settlement) failure() error {
	err := s.said.Err
	if err == nil {
		err = errors.New("the handler asked for it")
	}
	return fmt.Errorf("handle delivery of subscription %q on endpoint %q: %w", s.l.o.Subscription, s.l.o.Endpoint, err)
}

// record notes what became of the step in hand.
func (s *settlement) record(r core.Result) {
	if s.l.o.Observe != nil {
		s.trace = append(s.trace, core.Done{Step: s.step, Result: r})
	}
	switch {
	case r == core.ResultCut:
		s.did |= didCut
	case r == core.ResultStaleReturns:
		s.did |= didStale
	case r == core.ResultStaleGone && s.step.Do == core.ActRequeue: // brings nothing back
	case r == core.ResultDone, r == core.ResultStaleGone:
		s.did |= done(s.step.Do)
	case r == core.ResultUnknown && !s.step.Again:
		s.did |= done(s.step.Do) // counted as sent
	}
	if s.step.To == core.TargetDead && s.did&(didPublish|didPark) != 0 {
		s.did |= didDead
	}
}

// done is what a step does that was carried out.
func done(a core.Action) did {
	switch a {
	case core.ActAck, core.ActReject, core.ActRelease:
		return didSettle
	case core.ActRequeue:
		return didRequeue | didSettle
	case core.ActPublish, core.ActPublishLater:
		return didPublish
	case core.ActPark:
		return didPark
	case core.ActStore:
		return didStore
	default:
		return 0
	}
}
