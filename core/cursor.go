// SPDX-License-Identifier: Apache-2.0

package core

// Cursor walks a plan. It is a value: a copy walks on by itself. Executor,
// printer and Fate use the same one.
type Cursor struct {
	plan    *Plan
	at      uint8 // index of the step handed out last
	begun   bool
	over    bool
	settled bool // a verdict was carried out: no other one follows
	stored  bool // the copy is in the journal
	out     bool // the copy is published
	stale   bool // the delivery comes back by itself
	maybe   bool // a receipt was unknown: the copy may be out
}

// Start returns a cursor before the first step of p. p must not change while
// the cursor is in use.
func (p *Plan) Start() Cursor { return Cursor{plan: p} }

// On returns the cursor at the same place of p, a plan that is equal to its own.
// With nil it holds no plan, and is only good for being put on one again.
func (c Cursor) On(p *Plan) Cursor {
	c.plan = p
	return c
}

// Next takes what became of the step handed out last and returns the next one,
// or false where the plan ends. The result given to the first call is ignored.
//
// An unknown receipt whose step says Again gives the same step once more; how
// often is the caller's to bound, who then reports ResultTransient. A delivery
// found to come back by itself (ResultStaleReturns, which may answer a hold, a
// store or a publish as well as a verdict) is not copied: what is left is the
// removal of its row, and LogDouble where its copy is out or may be. One that
// is gone counts as settled; only a requeue, which brings nothing back then,
// counts as failed.
func (c *Cursor) Next(r Result) (Step, bool) {
	if c.over || c.plan == nil {
		return Step{}, false
	}
	i := uint8(0)
	if c.begun {
		s := &c.plan.Steps[c.at]
		switch {
		case r == ResultUnknown && s.Again:
			c.maybe = true
			return *s, true
		case r == ResultCut:
			return c.end()
		case r == ResultStaleReturns && !c.settled:
			return c.returns(s)
		case c.passed(s, r):
			if s.End {
				return c.end()
			}
			i = c.at + 1
		case s.Else == 0:
			return c.end()
		default:
			i = s.Else
		}
	}
	c.begun = true
	return c.seek(i)
}

// passed reports whether s, answered by r, leads to the step after it, and
// remembers what it did.
func (c *Cursor) passed(s *Step, r Result) bool {
	switch s.Do {
	case ActAck, ActReject:
		if r == ResultDone || r == ResultStaleGone {
			c.settled = true
			return true
		}
		return false
	case ActRequeue:
		c.settled = r == ResultDone
		return c.settled
	case ActRelease, ActKeep:
		// Nothing goes to the source, so nothing can fail that changes what follows.
		c.settled = true
		return true
	case ActStore:
		c.stored = r == ResultDone
		return c.stored
	case ActPark:
		// A stored row that does not become a parked one is still there.
		return r == ResultDone || c.stored
	case ActPublish, ActPublishLater:
		c.out = r == ResultDone || r == ResultUnknown || r == ResultStaleGone
		return c.out
	default:
		// A hold cut short, a row not removed, a line not written: go on.
		return true
	}
}

// returns ends the walk of a delivery that comes back by itself: the row of a
// copy that is not out is forgotten, a copy that is out makes a double.
func (c *Cursor) returns(s *Step) (Step, bool) {
	c.stale = true
	from := c.at
	if s.Do.verdict() {
		if from = s.Else; from == 0 {
			return c.end()
		}
	}
	for i := from; i < c.plan.N; i++ {
		t := &c.plan.Steps[i]
		if c.stored && (t.Do == ActForget || t.Do == ActForgetLater) || (c.out || c.maybe) && t.Code == LogDouble {
			return c.seek(i)
		}
	}
	return c.end()
}

// seek hands out the first step from i on that still has a meaning.
func (c *Cursor) seek(i uint8) (Step, bool) {
	for ; i < c.plan.N; i++ {
		s := &c.plan.Steps[i]
		if !c.skip(s) {
			c.at = i
			t := *s
			if t.Do == ActForgetLater && !c.out {
				// There is no copy whose settling would remove the row.
				t.Do = ActForget
			}
			return t, true
		}
		if s.End {
			break
		}
	}
	return c.end()
}

// skip reports whether s has lost its meaning: a second verdict, the removal
// of a row that was not stored, a complaint about a verdict that went through
// or that a returning delivery does not need.
func (c *Cursor) skip(s *Step) bool {
	if s.Do.verdict() {
		return c.settled || c.stale
	}
	switch s.Do {
	case ActForget, ActForgetLater:
		return !c.stored
	case ActLog:
		if s.Code == LogUnsettled || s.Code == LogNack {
			return c.settled || c.stale
		}
	default:
	}
	return false
}

func (c *Cursor) end() (Step, bool) {
	c.over = true
	return Step{}, false
}
