// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
)

// Up begins a link, behind its CONNACK and before anything else of it is read.
// What was not answered on the links before is void where it is of QoS 1, since
// its identifier may not be used here before the server has sent it again; of
// QoS 2 it goes on, for it is the same message for as long as the session lasts.
// Where the session is gone both are void, for good.
func (in *Intake) Up(l Link, s Session) {
	in.arrivals = in.arrivals[:0]
	in.mu.Lock()
	defer in.mu.Unlock()
	in.clock = clock{}
	in.live, in.number, in.kept, in.flight = l, l.Number(), s.Kept, 0
	in.plain = carry.Append(nil, &carry.Carry{Instance: in.c.Instance, Link: in.number})
	in.overrun = false
	in.returns = map[delivered]struct{}{}
	if !s.Present {
		in.correct()
	}
	in.ids.each(func(e *entry) { in.renew(e, s.Present) })
	in.sift()
}

// correct makes voids true that the host has not read yet: what was to come again
// over the link before does not. in.mu is held.
func (in *Intake) correct() {
	for _, rt := range in.routes {
		for _, rc := range rt.members {
			for _, h := range rc.voids {
				h.fate = fateGone
			}
		}
	}
}

// renew takes an entry over into a link that is up.
func (in *Intake) renew(e *entry, present bool) {
	switch {
	case !present:
		in.renounce(e, fateGone)
		in.forget(e)
	case e.state != stateHeld, e.qos == 2 && !e.left:
	default:
		in.renounce(e, fateReturns)
		in.forget(e)
	}
}

// Down ends the link. What becomes of the deliveries in hand shows at the next
// one: until then they go on, and acks are kept for it.
func (in *Intake) Down(l Link) {
	in.arrivals = in.arrivals[:0]
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.live == l {
		in.live = nil
	}
}

// Fail ends the session for good. Deliveries in hand are void: they come back to
// the next process where the session is kept. What waits is delivered where it
// is all that is left, then each Receive returns f.
func (in *Intake) Fail(f *core.Fault) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fault != nil {
		return
	}
	in.clock = clock{}
	in.fault, in.live = f, nil
	in.returns = map[delivered]struct{}{}
	in.ids.each(func(e *entry) {
		if in.kept {
			in.renounce(e, fateReturns)
		} else {
			in.renounce(e, fateGone)
		}
		in.forget(e)
	})
	for _, rt := range in.routes {
		for _, rc := range rt.members {
			rc.fault = f
		}
	}
	in.sift()
}

// Returns reports whether a delivery was unsettled when its link ended, and comes
// again, for its session was resumed by the last link: a copy of it would be one
// too many. At the next link it has been told by a void for long.
func (in *Intake) Returns(c *carry.Carry) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, ok := in.returns[delivered{c.Link, c.ID}]
	return ok && c.Instance == in.c.Instance
}

// sift takes out of all inboxes what comes again, and has everybody look at what
// is left. in.mu is held.
func (in *Intake) sift() {
	for _, rt := range in.routes {
		rt.box.filter(in.keeps)
		for _, rc := range rt.members {
			rc.box.filter(in.keeps)
			rc.rouse()
		}
	}
}

// keeps reports whether an item is still to be delivered. What nobody can settle
// any more is bounded as QoS 0 is: sessions may be lost again and again while
// nobody receives.
func (in *Intake) keeps(it *item) bool {
	switch {
	case it.handle == nil || it.handle.fate == fateQueued:
		return true
	case it.handle.fate == fateOrphan && in.room(it.size):
		in.uncount(it)
		it.handle, it.loose = nil, true
		in.loose.add(it.size)
		return true
	case it.handle.fate == fateOrphan:
		in.counters.Dropped++
		in.lines.hit(lineDropped, it.publish.Topic, in.clock.now())
	}
	it.handle = nil
	in.drop(*it)
	return false
}
