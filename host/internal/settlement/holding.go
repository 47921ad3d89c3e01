// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// A hold is prolonged when half of it is over, by most of MaxHold: a limit is
// what a transport still refuses. extendAhead is how much of the half those are
// ahead of their time that are prolonged along with others.
const (
	extendShare = 10
	extendAhead = 8
	// extendLeast is the shortest MaxHold that is prolonged.
	extendLeast = 10 * time.Millisecond
)

// extension is how long a prolonged hold of the profile lasts; 0 = it cannot be
// prolonged.
func extension(c *core.Capabilities) time.Duration {
	if !c.Extend || c.MaxHold < extendLeast {
		return 0
	}
	return c.MaxHold - c.MaxHold/extendShare
}

// Prolongs reports whether the holds of a profile are prolonged for as long as the
// delivery is with the lane.
func Prolongs(c *core.Capabilities) bool { return extension(c) > 0 }

// extend prolongs a delivery's hold. l.mu is held.
func (g *generation) extend(f *flight, by time.Duration) {
	if g.lost || f.wanted || f.state() != core.VoidLive || f.extends > maxExtends {
		return
	}
	f.extends++
	g.wanted[f.id] = f
	g.decide(frame.VerdictRun{First: f.id, Count: 1, Kind: core.VerdictExtend, Hold: by, WantResult: true})
}

// keepHeld has f's hold prolonged while it waits for its worker and while its
// handler runs; after that its settlement does it. The lane has one alarm for
// all. l.mu is held.
func (l *Lane) keepHeld(f *flight, by time.Duration) {
	f.prolong = by / 2
	l.ringHolds(f.received.Add(f.prolong))
}

// ringHolds has the alarm ring at the given time, or before. l.mu is held.
func (l *Lane) ringHolds(at time.Time) {
	if l.holdsAt.IsZero() || at.Before(l.holdsAt) {
		l.holdsAt = at
		l.o.Waiting.clock.set(&l.holds, at)
	}
}

// prolong is the clock's: it prolongs the holds whose time has come, the oldest
// first, so that they make one run. A handler that a stop has cancelled keeps
// its delivery no longer.
func (l *Lane) prolong() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holdsAt = time.Time{}
	g := l.now
	if g == nil || g.half || g.live == nil || l.closed || l.cancelled.Load() {
		return
	}
	oldest := g.live
	for oldest.next != nil {
		oldest = oldest.next
	}
	var next time.Time
	for f := oldest; f != nil; f = f.prev {
		if f.prolong == 0 || f.s != nil || f.wanted || f.state() != core.VoidLive {
			continue
		}
		by := extension(f.caps())
		at := f.received.Add(f.prolong)
		if at.Sub(now) <= by/2/extendAhead {
			g.extend(f, by)
			at = now.Add(by / 2)
			f.prolong = at.Sub(f.received)
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if !next.IsZero() {
		l.ringHolds(next)
	}
}

// strayAnswer takes the answers to EXTENDs of deliveries that have ended since.
// It reports how many of n answers from first on they are. l.mu is held.
func (g *generation) strayAnswer(first, n uint64) (taken uint64) {
	for id, left := range g.stray {
		if id-first >= n {
			continue
		}
		taken++
		if left > 1 {
			g.stray[id] = left - 1
		} else {
			delete(g.stray, id)
		}
	}
	return taken
}
