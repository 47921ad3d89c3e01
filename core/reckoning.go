// SPDX-License-Identifier: Apache-2.0

package core

// verdictState is what the source knows of the delivery.
type verdictState uint8

const (
	verdictOwed     verdictState = iota // it waits
	verdictSettled                      // done with
	verdictRequeued                     // it was told to bring it back
	verdictLetGo                        // it was released, or the verdict failed: Unsettled decides
	verdictReturns                      // it comes back by itself
	verdictGone                         // it does not
)

// reckoning is where a message stands after some steps of its plan.
type reckoning struct {
	c        *Case
	more     bool // the outcome wants it to go on: back, or to a dead letter
	verdict  verdictState
	delayed  bool   // of a requeue
	to       *Route // where its copy goes, nil without one
	sent     bool   // the copy is published
	maybe    bool   // it may be
	again    bool   // it is, after a receipt that said neither
	stored   bool   // its row is in the journal
	parked   bool
	failed   bool // it could not be published
	lost     bool // and that was the end of it
	finished bool // no step is left
}

// reckon walks the first done steps of path. The steps after them tell what the
// plan is about.
func reckon(path []Done, done int, c *Case) *reckoning {
	r := &reckoning{c: c, more: wantsMore(path, c), finished: done >= len(path)}
	switch c.Void {
	case VoidReturns:
		r.verdict = verdictReturns
	case VoidGone:
		r.verdict = verdictGone
	default:
	}
	for i := range path {
		s := &path[i].Step
		if s.To != TargetNone {
			r.to = c.route(s.To)
		}
		if i < done {
			r.step(s, path[i].Result)
		}
	}
	return r
}

// wantsMore reports whether the outcome wants the message to go on. It is read
// from the steps, since the policy has a say in it.
func wantsMore(path []Done, c *Case) bool {
	for i := range path {
		s := &path[i].Step
		switch {
		case s.To != TargetNone, s.Do == ActRequeue:
			return true
		case s.Code == LogCapReject, s.Code == LogRefused:
			return false
		}
	}
	switch c.Outcome.Kind {
	case OutcomeAck, OutcomeDrop, OutcomeDeadLetter:
		return false
	default:
		return true
	}
}

// step takes one step into account.
func (r *reckoning) step(s *Step, result Result) {
	if result == ResultStaleReturns && r.verdict == verdictOwed {
		r.verdict = verdictReturns
		return
	}
	done := result == ResultDone
	switch s.Do {
	case ActAck, ActReject, ActRelease, ActRequeue:
		r.answer(s, result)
	case ActPublish, ActPublishLater:
		switch {
		case done:
			r.sent, r.again, r.maybe = true, r.maybe, false
		case result == ResultUnknown && !s.Again:
			r.sent, r.maybe = true, true
		case result == ResultUnknown:
			r.maybe = true
		default:
			r.failed = true
		}
	case ActStore:
		r.stored = done
	case ActForget:
		r.stored = r.stored && !done
	case ActPark:
		r.parked = done
		r.stored = r.stored && !done
	case ActLog:
		r.lost = r.lost || s.Code == LogLost
	default:
	}
}

// answer takes a verdict into account.
func (r *reckoning) answer(s *Step, result Result) {
	if r.verdict != verdictOwed {
		return
	}
	switch {
	case s.Do == ActRelease, result == ResultFailed, result == ResultCut:
		r.verdict = verdictLetGo
	case result == ResultStaleGone:
		r.verdict = verdictGone
	case s.Do == ActRequeue:
		r.verdict, r.delayed = verdictRequeued, s.Delay > 0
	default:
		r.verdict = verdictSettled
	}
}
