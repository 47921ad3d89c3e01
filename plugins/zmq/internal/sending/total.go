// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"errors"
	"time"
)

// errHolds is why a subscriber is closed that has stopped within a message.
var errHolds = errors.New("it has stopped reading within a message, and what waits for all subscribers together is at its limit")

// fit makes room for size bytes more within what may wait for all subscribers
// together, and reports whether there is: those that are the furthest behind lose
// what waits for them; p.mu is held. What they are being written cannot be taken
// back: who has stopped within it is closed.
func (p *Pub) fit(size int) bool {
	for p.over(size) {
		s := p.furthest(false, func(*subscriber) bool { return true })
		if s == nil {
			break
		}
		p.losses.drop(s, s.peer.Out.Shed(), lossMemory)
	}
	if !p.over(size) {
		return true
	}
	now := time.Now()
	if s := p.furthest(true, func(s *subscriber) bool { return s.stuck(now) >= p.clock.still }); s != nil {
		s.peer.Close(errHolds)
	}
	return false
}

// over reports whether size bytes more are too many. One message is not.
func (p *Pub) over(size int) bool {
	held := p.config.Memory.Held()
	return held > 0 && held+int64(size) > p.config.Most
}

// furthest returns the subscriber whose oldest message is the oldest of all, of
// those that its queue's writer has in work or of the others; nil where there is
// none; p.mu is held.
func (p *Pub) furthest(inWork bool, which func(*subscriber) bool) *subscriber {
	var found *subscriber
	oldest := 0
	for _, s := range p.subscribers {
		i, ok := s.peer.Out.Oldest(inWork)
		if ok && (found == nil || i < oldest) && s.peer.Cause() == nil && which(s) {
			found, oldest = s, i
		}
	}
	return found
}

// waits reports whether a subscriber's queue is not empty.
func (s *subscriber) waits() bool {
	n, _ := s.peer.Out.Depth()
	return n > 0
}

// stuck returns for how long a subscriber has taken nothing of what it is being
// written, as far as it was asked.
func (s *subscriber) stuck(now time.Time) time.Duration {
	if progress := s.peer.Out.Progress(); progress != s.held.progress || s.held.since.IsZero() {
		s.held.progress, s.held.since = progress, now
	}
	return now.Sub(s.held.since)
}
