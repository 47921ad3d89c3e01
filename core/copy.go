// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// route returns the route that t names.
func (c *Case) route(t Target) *Route {
	if t == TargetDead {
		return &c.Dead
	}
	return &c.Retry
}

// step returns a step about the copy that goes to t.
func (d *draft) step(do Action, t Target, delay time.Duration) Step {
	s := Step{Do: do, To: t, Count: increment(d.c.Attempt.Copies), Delay: delay}
	if do == ActPublish || do == ActPublishLater {
		// At-least-once: what may not have arrived is sent again.
		s.Again = d.acks != AckNone || d.c.route(t).Caps.Dedups
	}
	return s
}

// forget returns the removal of the row of a copy to t.
func (d *draft) forget(t Target) Step {
	do := ActForget
	if d.c.route(t).Caps.Retains == RetainProcess {
		do = ActForgetLater
	}
	return Step{Do: do, To: t}
}

// publish writes the copy that leaves at once: it is published, then the
// original is settled. delay is what the destination itself waits, held how
// long the delivery will have been held by then. With a journal a copy that
// only this process would read is stored first.
func (d *draft) publish(t Target, delay, held time.Duration) {
	store := d.c.Journal && d.c.route(t).Caps.Retains == RetainProcess
	if store {
		i := d.add(d.step(ActStore, t, delay))
		d.plan.Steps[i].Else = i + 1
	}
	i := d.add(d.step(ActPublish, t, delay))
	d.verdict(d.accepted(), LogDouble)
	if store {
		d.add(d.forget(t))
	}
	d.end()
	d.plan.Steps[i].Else = d.rescue(t, held)
}

// settleAndWait writes the delayed copy without a journal: the original is
// settled, the copy waits in memory.
func (d *draft) settleAndWait(wait time.Duration) {
	d.plan.Notes |= NoteWindow
	code := LogUnsettled
	if d.quiet {
		code = LogNone
	}
	ack := d.plan.N
	if d.acks == AckCumulative {
		code = LogNone
	}
	d.verdict(d.accepted(), code)
	d.waitAndPublish(wait)
	if d.acks == AckCumulative {
		d.plan.Steps[ack].Else = d.log(LevelWarn, LogDouble)
		d.waitAndPublish(wait)
	}
}

// waitAndPublish writes the copy that waits in memory and ends the plan. On a
// cumulative source it leaves as well where the ack failed: the next ack covers
// this delivery all the same, so the source may not have it any more.
func (d *draft) waitAndPublish(wait time.Duration) {
	i := d.add(d.step(ActPublishLater, TargetRetry, wait))
	d.end()
	d.plan.Steps[i].Else = d.log(LevelError, LogLost)
	d.end()
}

// storeAndWait writes the delayed copy with a journal: it is stored, the
// original is settled, the copy is published when due and its row removed.
// Where it cannot be stored it is held, as where there is no room.
func (d *draft) storeAndWait(wait time.Duration) {
	store := d.add(d.step(ActStore, TargetRetry, wait))
	ack := d.plan.N
	d.verdict(d.accepted(), LogNone)
	due := d.add(d.step(ActPublishLater, TargetRetry, wait))
	row := d.add(d.forget(TargetRetry))
	switch d.acks {
	case AckNone:
	case AckCumulative:
		// The next ack covers it all the same: the row stays, and its copy.
		d.plan.Steps[ack].Else = due
	default:
		// The source still has it: the row is taken back.
		d.plan.Steps[ack].Else = row
		d.unsettled()
	}
	d.end()

	d.plan.Steps[store].Else = d.plan.N
	held, ok := d.holdForCopy(wait)
	if !ok {
		d.plan.Steps[due].Else = d.rescue(TargetRetry, d.c.Held)
		return
	}
	i := d.add(d.step(ActPublish, TargetRetry, 0))
	d.verdict(d.accepted(), LogDouble)
	d.end()
	d.plan.Steps[i].Else = d.rescue(TargetRetry, held)
	d.plan.Steps[due].Else = d.plan.Steps[i].Else
}

// holdForCopy writes the hold that stands in for a waiting copy and returns how
// long the delivery is held then; false where the source brings it back before.
func (d *draft) holdForCopy(wait time.Duration) (time.Duration, bool) {
	held := d.c.Held
	if d.fits(held, wait) {
		d.hold(wait, false)
		return held + wait, true
	}
	d.late()
	if d.c.Source.Unsettled == UnsettledOnTimeout {
		d.release()
		return held, false
	}
	room := d.room(held)
	d.hold(room, true)
	return held + room, true
}

// rescue writes what is done with a copy that could not be published and
// returns where that begins: parked, requeued, released, kept, or lost, the
// first that the journal and the source allow.
func (d *draft) rescue(t Target, held time.Duration) uint8 {
	s := &d.c.Source
	begin := d.plan.N
	if d.c.Journal {
		d.log(LevelWarn, LogCopy)
		parked := d.add(d.step(ActPark, t, 0))
		d.verdict(d.accepted(), LogDouble)
		d.end()
		d.plan.Steps[parked].Else = d.plan.N
	}
	lost := d.acks == AckNone || d.acks == AckCumulative && s.Unsettled != UnsettledOnTimeout
	if lost {
		d.log(LevelError, LogLost)
		d.verdict(d.accepted(), LogNone)
		d.end()
		return begin
	}
	if !d.c.Journal {
		d.log(LevelWarn, LogCopy)
	}
	switch {
	case s.Requeue == RequeueDelayed:
		d.requeue(d.longestDelay(), true, LogNack)
	case s.Requeue == RequeueNow:
		wait := floorMax
		if s.MaxHold > 0 && !s.Extend {
			// The tries took their time of it too.
			wait = min(wait, d.room(held))
		}
		d.holdAndRequeue(wait, false)
	case s.Unsettled == UnsettledOnTimeout:
		d.release()
	default:
		d.add(d.step(ActKeep, t, 0))
		d.end()
	}
	return begin
}
