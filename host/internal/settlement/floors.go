// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
)

const (
	// floorEntries is how many messages a lane tells apart that come back
	// without a count of the source's own. Beyond it the oldest is forgotten,
	// whose next return is a first one again.
	floorEntries = 4096
	// floorFirst is the floor of the second return; it doubles from there to
	// floorMost.
	floorFirst = 50 * time.Millisecond
	floorMost  = time.Second
)

// floors counts the returns of plain requeues by identity. All but any is
// guarded by the lane's lock.
type floors struct {
	most    time.Duration
	any     atomic.Bool // something is counted
	returns map[string]*floorEntry
	oldest  *floorEntry
	newest  *floorEntry
}

type floorEntry struct {
	identity string
	returns  uint32
	older    *floorEntry
	newer    *floorEntry
}

func newFloors(most time.Duration) *floors {
	if most <= 0 {
		most = floorMost
	}
	return &floors{most: most, returns: make(map[string]*floorEntry)}
}

// returned counts one more return of a message and gives how many it has.
func (t *floors) returned(identity []byte) uint32 {
	e := t.returns[string(identity)]
	if e == nil {
		if len(t.returns) >= floorEntries {
			t.remove(t.oldest)
		}
		e = &floorEntry{identity: string(identity)}
		t.returns[e.identity] = e
		t.any.Store(true)
		t.append(e)
	}
	if e.returns++; e.returns == 0 {
		e.returns--
	}
	return e.returns
}

// forget forgets a message that does not come back.
func (t *floors) forget(identity []byte) {
	if e := t.returns[string(identity)]; e != nil {
		t.remove(e)
	}
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

func (t *floors) append(e *floorEntry) {
	e.older = t.newest
	if t.newest == nil {
		t.oldest = e
	} else {
		t.newest.newer = e
	}
	t.newest = e
}

func (t *floors) remove(e *floorEntry) {
	delete(t.returns, e.identity)
	t.any.Store(len(t.returns) > 0)
	if e.older == nil {
		t.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		t.newest = e.older
	} else {
		e.newer.older = e.older
	}
}

// floor is the least wait before a plain requeue of this delivery (D17).
func (s *settlement) floor() time.Duration {
	l := s.l
	p := &l.o.Policy
	if p.MaxAttempts > 0 || p.DeadLetter || p.Backoff || s.c.Source.Requeue == core.RequeueNone {
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
