// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync"
	"time"
)

// limiter lets a burst through, then one a second, and counts the rest.
type limiter struct {
	mu      sync.Mutex
	burst   int
	left    int
	refill  time.Time
	dropped int
}

func newLimiter(burst int, now time.Time) *limiter {
	return &limiter{burst: burst, left: burst, refill: now}
}

// take reports whether one more may pass, and how many were dropped since the
// last that did.
func (l *limiter) take(now time.Time) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := int(now.Sub(l.refill) / time.Second); n > 0 {
		l.left = min(l.burst, l.left+n)
		l.refill = l.refill.Add(time.Duration(n) * time.Second)
	}
	if l.left == 0 {
		l.dropped++
		return false, 0
	}
	l.left--
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

// reset makes room for a whole burst again.
func (l *limiter) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = l.burst
}
