// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"sync"
	"time"
)

// noticeEvery is how far lines of one kind are apart, whatever strangers do.
const noticeEvery = time.Second

// notices bound the lines that others can cause, each kind for itself.
type notices struct {
	accept, tooMany, handshake, dropped Notice
}

// all are the kinds.
func (n *notices) all() [4]*Notice {
	return [...]*Notice{&n.accept, &n.tooMany, &n.handshake, &n.dropped}
}

// Notice bounds one kind of log line to one a second. The zero value is ready; its
// methods may be called from any goroutine.
type Notice struct {
	mu   sync.Mutex
	last time.Time
	held int             // lines
	line func(times int) // the last of them
}

// Due reports whether a line is due now, and how many times it stands for: this
// one, and those since the last line.
func (n *Notice) Due() (times int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held++
	if !n.last.IsZero() && time.Since(n.last) < noticeEvery {
		return 0, false
	}
	times, n.held, n.last = n.held, 0, time.Now()
	return times, true
}

// say logs a line now, or holds it back until it is due or a later one takes its
// place, which it reports. The line is told how many it stands for: itself, and
// those since the last one.
func (n *Notice) say(line func(times int)) (held bool) {
	n.mu.Lock()
	n.held++
	n.line = line
	n.mu.Unlock()
	n.flush(time.Now())
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held > 0
}

// flush logs the line that is held back, if it is due, and returns when one is
// due, zero = none is held back.
func (n *Notice) flush(now time.Time) (next time.Time) {
	n.mu.Lock()
	if n.held == 0 {
		n.mu.Unlock()
		return time.Time{}
	}
	if next = n.last.Add(noticeEvery); !n.last.IsZero() && now.Before(next) {
		n.mu.Unlock()
		return next
	}
	times, line := n.held, n.line
	n.held, n.line, n.last = 0, nil, now
	n.mu.Unlock()
	line(times)
	return time.Time{}
}

// say logs a line of a kind, at most one in noticeEvery.
func (p *Peering) say(n *Notice, line func(times int)) {
	if n.say(line) {
		p.wakeWatcher()
	}
}
