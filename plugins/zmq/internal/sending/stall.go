// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"sync"
	"time"
)

// stallAfter is how long a peer may take nothing while messages wait for it,
// before others get them: its share of the turns would fill the host's window of
// 1024 messages and 8 MiB without a receipt, and hold up everybody.
const stallAfter = time.Second

// stall is the clock by which peers that do not read are looked for. It runs
// while messages wait for one of several. All but due is guarded by the owner's
// lock.
type stall struct {
	after   time.Duration
	due     func()
	timer   *time.Timer
	off     bool
	running sync.WaitGroup // of the timer's function
}

// arm lets the clock run, once, where there are peers to choose from.
func (s *stall) arm(peers int) {
	if s.timer != nil || s.off || peers < 2 {
		return
	}
	s.running.Add(1)
	s.timer = time.AfterFunc(s.after/2, func() {
		defer s.running.Done()
		s.due()
	})
}

// disarm stops the clock for good.
func (s *stall) disarm() {
	s.off = true
	if s.timer != nil && s.timer.Stop() {
		s.running.Done()
	}
	s.timer = nil
}

// stalled gives what waits for peers that take nothing to the others.
func (p *Push) stalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall.timer = nil
	now, busy := time.Now(), false
	for _, m := range p.members {
		n, _ := m.peer.Out.Depth()
		busy = busy || n > 0
		if w := m.peer.Out.Written(); n == 0 || w != m.written || m.moved.IsZero() {
			m.written, m.moved = w, now
			continue
		}
		if now.Sub(m.moved) >= p.stall.after && p.elsewhere(m) {
			p.backlog.before(m.peer.Out.TakeBack())
			m.full = true
		}
	}
	p.flush()
	if busy {
		p.stall.arm(len(p.members))
	}
}

// elsewhere reports whether another peer than m has room; p.mu is held.
func (p *Push) elsewhere(m *member) bool {
	for _, x := range p.members {
		if x != m && !x.full && x.peer.Out.Room() {
			return true
		}
	}
	return false
}
