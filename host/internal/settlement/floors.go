// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

const (
	// floorFirst is the floor of the second return; it doubles from there to
	// floorMost.
	floorFirst = 50 * time.Millisecond
	floorMost  = time.Second
)

// floors counts the returns of plain requeues by identity, for messages that come
// back without a count of the source's own. One that is forgotten begins anew.
type floors struct {
	recent[uint32]
	most time.Duration
}

func newFloors(most time.Duration) *floors {
	if most <= 0 {
		most = floorMost
	}
	return &floors{most: most}
}

// returned counts one more return of a message and gives how many it has. The
// lane's lock is held.
func (t *floors) returned(identity []byte) uint32 {
	n := t.enter(identity)
	if *n++; *n == 0 {
		*n--
	}
	return *n
}

// after is the floor after so many returns, the one to come included.
func (t *floors) after(returns uint32) time.Duration {
	if returns < 2 {
		return 0
	}
	floor := min(floorFirst, t.most)
	for n := returns - 2; n > 0 && floor < t.most; n-- {
		floor = min(2*floor, t.most)
	}
	return floor
}

// floor is the least wait before a plain requeue of this delivery (D17).
func (s *settlement) floor() time.Duration {
	l := s.l
	p := &l.o.Policy
	if p.MaxAttempts > 0 || p.DeadLetter && !p.Elapsed || p.Backoff || s.c.Source.Requeue == core.RequeueNone {
		return 0
	}
	if s.c.Outcome.Kind != core.OutcomeRetry || s.c.Void != core.VoidLive {
		return 0
	}
	var floor time.Duration
	switch {
	case s.c.Attempt.Native > 0:
		floor = l.floors.after(s.c.Attempt.Native)
	case len(s.d.Identity) == 0:
		floor = l.floors.after(2)
	default:
		l.mu.Lock()
		n := l.floors.returned(s.d.Identity)
		l.mu.Unlock()
		floor = l.floors.after(n)
	}
	if l.o.NoFloor {
		return 0
	}
	return floor
}

// returns is how often a delivery came back that nobody counts, so that a
// Backoff grows for it as well.
func (s *settlement) returns() uint32 {
	l := s.l
	if s.c.Source.Counts == core.CountNative || len(s.d.Identity) == 0 || !l.floors.any.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.floors.get(s.d.Identity); n != nil {
		return *n
	}
	return 0
}

// counted reports whether the outcome may bring the delivery itself back, later,
// on a source that does not count.
func (s *settlement) counted() bool {
	return s.l.o.Policy.Backoff && s.c.Outcome.Kind == core.OutcomeRetryAfter &&
		s.c.Source.Requeue != core.RequeueNone && s.c.Source.Counts != core.CountNative && len(s.d.Identity) > 0
}

// countReturn counts a return where the plan, as long as nothing fails, hands the
// delivery back; a copy is counted by its header.
func (s *settlement) countReturn() {
	for i := range s.plan.N {
		switch s.plan.Steps[i].Do {
		case core.ActLog, core.ActHold:
			continue
		case core.ActRequeue:
			s.l.mu.Lock()
			s.l.floors.returned(s.d.Identity)
			s.l.mu.Unlock()
		}
		return
	}
}
