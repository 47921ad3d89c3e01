// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"sync"
	"time"
)

// noticeEvery is how far lines of one kind are apart at least, whatever strangers
// do.
const noticeEvery = time.Second

// notices bound the lines that others can cause, each kind for itself.
type notices struct {
	accept, tooMany, handshake, dropped Notice
}

// Notice bounds one kind of log line to one a second. The zero value is ready; its
// method may be called from any goroutine.
type Notice struct {
	mu   sync.Mutex
	last time.Time
	held int
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
