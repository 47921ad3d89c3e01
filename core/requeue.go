// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// requeueFloor hands the delivery back after floor, by the source's own delay
// where it has one, else by holding it.
func (d *draft) requeueFloor(floor time.Duration) {
	s := &d.c.Source
	delayed := s.Requeue == RequeueDelayed
	switch {
	case floor == 0:
		d.requeueNow()
	case delayed && within(floor, s.MaxDelay):
		d.requeue(floor, false, LogNack)
	case d.fits(d.c.Held, floor):
		d.holdAndRequeue(floor, false)
	case delayed:
		d.requeue(d.longestDelay(), true, LogNack)
	default:
		d.holdAndRequeue(d.room(d.c.Held), true)
	}
}

// requeueLater hands the delivery back after wait: by the source's own delay,
// else by holding it. Where neither reaches, the source's timeout or the
// longest there is must do, and a line says so.
func (d *draft) requeueLater(wait time.Duration) {
	s := &d.c.Source
	delayed := s.Requeue == RequeueDelayed
	switch {
	case wait == 0:
		d.requeueNow()
		return
	case delayed && within(wait, s.MaxDelay):
		d.requeue(wait, false, LogNack)
		return
	case d.fits(d.c.Held, wait):
		d.holdAndRequeue(wait, false)
		return
	}
	d.late()
	hold := d.room(d.c.Held)
	switch {
	case s.Unsettled == UnsettledOnTimeout:
		d.release()
	case delayed && d.longestDelay() >= hold:
		d.requeue(d.longestDelay(), true, LogNack)
	default:
		d.holdAndRequeue(hold, true)
	}
}

// hold writes a hold; longest says that wait is all there is.
func (d *draft) hold(wait time.Duration, longest bool) {
	if wait > 0 {
		d.add(Step{Do: ActHold, Delay: wait, Max: longest})
	}
}

// requeue writes a requeue that ends the plan; longest says that delay is all
// there is.
func (d *draft) requeue(delay time.Duration, longest bool, code LogCode) {
	d.verdict(ActRequeue, code)
	last := &d.plan.Steps[d.plan.N-1]
	last.Delay, last.Max = delay, longest
	d.end()
}

// requeueNow writes a requeue at once.
func (d *draft) requeueNow() {
	code := LogUnsettled
	if d.quiet {
		code = LogNone
	}
	d.requeue(0, false, code)
}

// holdAndRequeue writes a requeue at once after a hold.
func (d *draft) holdAndRequeue(wait time.Duration, longest bool) {
	d.hold(wait, longest)
	d.requeue(0, false, LogNack)
}
