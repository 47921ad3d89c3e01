// SPDX-License-Identifier: Apache-2.0

package core

import "time"

const (
	// floorFirst is the wait before the second return of a plain requeue; it
	// doubles from there to floorMax.
	floorFirst = 50 * time.Millisecond
	// floorMax is the largest floor, and what a source without a delay of its
	// own holds a delivery for whose copy could not be published.
	floorMax = time.Second
	// requeueMax bounds a requeue with the longest delay a source offers.
	requeueMax = time.Minute
	// shareOfLimit is the part of a limit that "the longest" leaves unused, so
	// that the verdict arrives before the source's own timer: a tenth.
	shareOfLimit = 10
)

// Floor returns the least wait before a plain requeue without a cap: 0 for the
// first return, then 50ms, doubling to 1s. returns counts the returns, the
// one to come included.
func Floor(returns uint32) time.Duration {
	if returns < 2 {
		return 0
	}
	if returns-2 >= 5 {
		return floorMax
	}
	return min(floorMax, floorFirst<<(returns-2))
}

// draft is a plan being written.
type draft struct {
	plan   *Plan
	policy *Policy
	c      *Case
	acks   AckMode // none where the delivery is gone
	gone   bool    // nobody waits for a verdict
	quiet  bool    // no L-UNS: after L-DEC and at the cap other lines say it

	// Verdicts whose failure is answered by a line at the plan's end.
	failed [3][3]uint8
	fails  [3]uint8
}

// The lines at a plan's end.
const (
	tailUnsettled = iota
	tailDouble
	tailNack
)

func (d *draft) add(s Step) uint8 {
	i := d.plan.N
	d.plan.Steps[i] = s
	d.plan.N++
	return i
}

func (d *draft) log(level LogLevel, code LogCode) uint8 {
	return d.add(Step{Do: ActLog, Level: level, Code: code})
}

// open writes the lines about the outcome's cause.
func (d *draft) open() {
	o := &d.c.Outcome
	switch o.Cause {
	case CauseError:
		// What a handler says after it was let go is no error of its own.
		if o.Kind != OutcomeLeave {
			d.log(LevelWarn, LogError)
		}
	case CausePanic:
		d.log(LevelError, LogPanic)
	case CauseUndecodable:
		d.add(Step{Do: ActNoRun})
		d.log(LevelWarn, LogDecode)
		d.quiet = true
	case CauseReplyFailed:
		d.log(LevelWarn, LogReply)
	default:
	}
	if o.Kind == OutcomeFailFast {
		d.log(LevelError, LogFailFast)
	}
}

// once says that a source without acks takes no verdict.
func (d *draft) once() {
	if d.acks == AckNone && !d.gone && !d.quiet {
		d.log(LevelWarnOnce, LogUnsettled)
	}
}

// unsettled says that a retry cannot be carried out.
func (d *draft) unsettled() {
	if !d.quiet {
		d.log(LevelWarn, LogUnsettled)
	}
}

// late says that the delay asked for is not honoured.
func (d *draft) late() {
	d.plan.Notes |= NoteDelay
	d.log(LevelWarn, LogDelay)
}

// accepted is the verdict of what is done.
func (d *draft) accepted() Action {
	if d.acks == AckNone {
		return ActRelease
	}
	return ActAck
}

// dropped is the verdict of what must not come back and reach no dead letter.
func (d *draft) dropped() Action {
	if d.acks != AckNone && d.c.Source.Reject == RejectDrops {
		return ActReject
	}
	return d.accepted()
}

// rejected is the verdict of what must not come back, a dead letter of the
// source's own included.
func (d *draft) rejected() Action {
	if d.acks != AckNone && d.c.Source.Reject != RejectNone {
		return ActReject
	}
	return d.accepted()
}

// settle writes a verdict that ends the plan, and the line about its failure.
func (d *draft) settle(a Action) {
	code := LogUnsettled
	if d.quiet {
		code = LogNone
	}
	d.verdict(a, code)
	d.end()
}

// release writes a release that ends the plan.
func (d *draft) release() {
	d.verdict(ActRelease, LogNone)
	d.end()
}

// verdict writes a verdict; code is the line about its failure. A delivery
// that is gone gets none.
func (d *draft) verdict(a Action, code LogCode) {
	if d.gone {
		return
	}
	i := d.add(Step{Do: a})
	if a != ActRelease {
		d.onFailure(i, code)
	}
}

// end marks the step written last as the last one.
func (d *draft) end() {
	if d.plan.N > 0 {
		d.plan.Steps[d.plan.N-1].End = true
	}
}

// onFailure notes that the failure of the verdict at i is answered by a line
// with code at the plan's end.
func (d *draft) onFailure(i uint8, code LogCode) {
	var t int
	switch code {
	case LogUnsettled:
		t = tailUnsettled
	case LogDouble:
		t = tailDouble
	case LogNack:
		t = tailNack
	default:
		return
	}
	d.failed[t][d.fails[t]] = i
	d.fails[t]++
}

// tails writes the lines that verdicts fail over to.
func (d *draft) tails() {
	for t, code := range [...]LogCode{LogUnsettled, LogDouble, LogNack} {
		n := d.fails[t]
		if n == 0 {
			continue
		}
		i := d.log(LevelWarn, code)
		d.plan.Steps[i].End = true
		for _, v := range d.failed[t][:n] {
			d.plan.Steps[v].Else = i
		}
	}
}

// fits reports whether a delivery held for held may be held for wait more.
func (d *draft) fits(held, wait time.Duration) bool {
	s := &d.c.Source
	return s.MaxHold == 0 || s.Extend || d.gone || wait < s.MaxHold-held
}

// room is how long a delivery held for held may still be held where that is
// limited.
func (d *draft) room(held time.Duration) time.Duration {
	s := &d.c.Source
	return max(longestOf(s.MaxHold)-held, 0)
}

// longestDelay is the delay of a requeue with the longest delay there is.
func (d *draft) longestDelay() time.Duration {
	m := d.c.Source.MaxDelay
	if m == 0 {
		return requeueMax
	}
	return min(longestOf(m), requeueMax)
}

// longestOf is the longest that is used of a limit.
func longestOf(limit time.Duration) time.Duration {
	return limit / shareOfLimit * (shareOfLimit - 1)
}
