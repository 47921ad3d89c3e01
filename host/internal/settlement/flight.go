// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// flight is a delivery from its arrival until its verdict is given or it is
// void. Its memory is used again; the lane's window bounds their number. All
// but void is guarded by the lane's lock, or belongs to the worker.
type flight struct {
	gen      *generation
	frame    *frame.Deliveries // nil once nothing borrows from it
	at       int               // its place in the frame
	id       uint64
	profile  uint32
	forfeit  bool // something may read the frame for nobody knows how long
	weight   uint64
	scope    string // lies in the frame until the settlement leaves the worker
	received time.Time
	prolong  time.Duration // after received: the time of the next EXTEND; 0 = none
	void     atomic.Uint32 // core.Void

	// Until it is begun.
	key     *key    // nil = none
	behind  *flight // the next one that waits for the key
	unkeyed error   // LaneOptions.Key failed
	snoozes int
	snoozed time.Duration // in all

	// The settlement that left the worker with it; nil before.
	s    *settlement
	life uint64

	counted bool // against the window
	wanted  bool // the answer to its verdict is wanted
	extends int  // EXTEND verdicts that are not answered
	prev    *flight
	next    *flight
}

// item is the delivery in its frame.
func (f *flight) item() *frame.Delivery { return &f.frame.Items[f.at] }

// caps are the capabilities of its profile.
func (f *flight) caps() *core.Capabilities { return &f.gen.a.Profiles[f.profile] }

// state says what became of it behind the lane's back.
func (f *flight) state() core.Void { return core.Void(f.void.Load()) }

// letGo is what becomes of it when it ends without a verdict.
func (f *flight) letGo() core.Void {
	if f.caps().Unsettled == core.UnsettledLost {
		return core.VoidGone
	}
	return core.VoidReturns
}

// release says that it goes back without a verdict although a handler was given
// it. It reports false where there is nothing to say. l.mu is held.
func (f *flight) release() bool {
	if f.state() != core.VoidLive || f.letGo() != core.VoidReturns || f.wanted || f.gen.lost {
		return false
	}
	f.gen.decide(frame.VerdictRun{First: f.id, Count: 1, Kind: core.VerdictRelease})
	return true
}

// unframe gives the frame back. One that a publish may still read is left to the
// garbage collector.
func (f *flight) unframe() {
	if f.frame != nil && !f.forfeit {
		f.frame.Release()
	}
	f.frame, f.forfeit = nil, false
}

// newFlight returns an unused flight. l.mu is held.
func (l *Lane) newFlight() *flight {
	if n := len(l.free) - 1; n >= 0 {
		f := l.free[n]
		l.free = l.free[:n]
		return f
	}
	return &flight{}
}

// recycle takes back a flight that nothing refers to. l.mu is held.
func (l *Lane) recycle(f *flight) {
	f.unframe()
	l.keys.begun(f)
	g := f.gen
	g.unlink(f)
	if f.wanted || f.extends > 0 {
		delete(g.wanted, f.id)
	}
	if f.extends > 0 && !g.lost {
		g.stray[f.id] = f.extends
	}
	g.settled()
	if f.state() != core.VoidLive {
		f.void.Store(uint32(core.VoidLive))
	}
	f.gen, f.s, f.scope, f.unkeyed = nil, nil, "", nil
	f.snoozes, f.snoozed = 0, 0
	f.wanted, f.extends, f.prolong = false, 0, 0
	l.free = append(l.free, f)
}
