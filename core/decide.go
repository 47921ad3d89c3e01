// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// Number returns the attempt's number: the source's own count where it counts,
// 0 (unknown) where it does not and no copy can ever be made, else one more
// than the copies made so far. It saturates.
func (a Attempt) Number(source Capabilities, copies bool) uint64 {
	switch {
	case source.Counts == CountNative:
		return uint64(a.Native)
	case !copies:
		return 0
	default:
		return increment(a.Copies)
	}
}

// increment returns n + 1, saturating.
func increment(n uint64) uint64 {
	if n+1 == 0 {
		return n
	}
	return n + 1
}

// Admit reports whether the handler may run. It is asked before decoding, with
// the outcome still unset. False means that the source's own count is beyond
// the cap: Decide's plan is carried out without a run, whatever the case's
// outcome says.
func Admit(p *Policy, c *Case) bool {
	return p.MaxAttempts == 0 || c.Source.Counts != CountNative || c.Attempt.Native <= p.MaxAttempts
}

// Decide fills into with the plan for c under p. It depends on nothing else
// and never allocates.
func Decide(p *Policy, c *Case, into *Plan) {
	*into = Plan{}
	if c.Void == VoidReturns {
		return
	}
	d := draft{plan: into, policy: p, c: c, acks: c.Source.Ack, gone: c.Void == VoidGone}
	if d.gone {
		d.acks = AckNone
	}
	if !Admit(p, c) {
		into.Notes |= NoteOverCap
		d.add(Step{Do: ActNoRun})
		d.spent()
	} else {
		d.open()
		d.outcome()
	}
	d.tails()
}

// outcome writes the steps of the outcome, after the lines about its cause.
func (d *draft) outcome() {
	switch d.c.Outcome.Kind {
	case OutcomeAck:
		d.once()
		d.settle(d.accepted())
	case OutcomeDrop:
		d.once()
		d.settle(d.dropped())
	case OutcomeDeadLetter:
		if d.policy.DeadLetter {
			d.deadLetter()
			return
		}
		if d.gone || d.c.Source.Reject != RejectDeadLetters {
			d.log(LevelWarn, LogRefused)
		}
		d.settle(d.rejected())
	case OutcomeRetry, OutcomeRetryAfter:
		d.retry()
	case OutcomeFailFast:
		d.verdict(ActRelease, LogNone)
		d.add(Step{Do: ActStop, End: true})
	default:
		d.release()
	}
}

// retry applies the policy: the cap comes first, a dead letter without one takes
// every retry, the rest goes back.
func (d *draft) retry() {
	p, c := d.policy, d.c
	copies := c.Retry.State != RouteNone
	n := c.Attempt.Number(c.Source, copies)
	later := c.Outcome.Kind == OutcomeRetryAfter || p.Backoff
	switch {
	case c.Spent, p.MaxAttempts > 0 && n >= uint64(p.MaxAttempts):
		d.spent()
	case !p.capped() && p.DeadLetter:
		d.deadLetter()
	case later:
		d.later(max(c.Outcome.After, 0))
	case p.capped() && copies && c.Source.Counts == CountNone:
		d.later(0)
	case p.MaxAttempts > 0:
		d.again(0)
	default:
		d.again(c.Floor)
	}
}

// spent writes what follows where the cap is reached.
func (d *draft) spent() {
	d.plan.Notes |= NoteCap
	d.quiet = true
	if d.policy.DeadLetter {
		d.log(LevelWarn, LogCapDead)
		d.deadLetter()
		return
	}
	d.log(LevelWarn, LogCapReject)
	d.settle(d.rejected())
}

// deadLetter publishes to the dead letter and settles.
func (d *draft) deadLetter() {
	if d.c.Dead.State != RouteOpen {
		d.refuse()
		return
	}
	d.publish(TargetDead, 0, d.c.Held)
}

// refuse drops a delivery whose destination nothing can carry.
func (d *draft) refuse() {
	d.log(LevelWarn, LogRefused)
	d.settle(d.dropped())
}

// again hands the delivery back, after floor where that is not 0, or says that
// the source cannot.
func (d *draft) again(floor time.Duration) {
	s := &d.c.Source
	switch {
	case d.gone:
		d.unsettled()
		d.end()
	case s.Requeue != RequeueNone:
		d.requeueFloor(max(floor, 0))
	case s.Ack == AckCumulative:
		d.unsettled()
		d.verdict(ActAck, LogNone)
		d.end()
	case s.Unsettled == UnsettledOnTimeout:
		d.release()
	default:
		d.unsettled()
		d.release()
	}
}

// later brings the delivery or a copy of it back after wait.
func (d *draft) later(wait time.Duration) {
	p, c := d.policy, d.c
	s, to := &c.Source, &c.Retry
	counts, copies := s.Counts == CountNative, to.State != RouteNone
	native := !d.gone && (counts || !copies ||
		!p.capped() && s.Requeue == RequeueDelayed && within(wait, s.MaxDelay))
	switch {
	case native && s.Requeue != RequeueNone:
		d.requeueLater(wait)
	case counts || !copies:
		// No copy is allowed or possible, and the source takes nothing back.
		if wait > 0 && !d.gone {
			d.late()
		}
		d.again(0)
	case to.State == RouteRefused:
		d.refuse()
	case wait == 0:
		d.publish(TargetRetry, 0, c.Held)
	case wait < to.Caps.MaxDelay:
		d.publish(TargetRetry, wait, c.Held)
	case c.Full:
		if held, ok := d.holdForCopy(wait); ok {
			d.publish(TargetRetry, 0, held)
		}
	case c.Journal:
		d.storeAndWait(wait)
	default:
		d.settleAndWait(wait)
	}
}

// within reports whether wait is below limit, which is exclusive and none when
// it is 0.
func within(wait, limit time.Duration) bool { return limit == 0 || wait < limit }
