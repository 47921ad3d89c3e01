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
