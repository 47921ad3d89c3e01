// SPDX-License-Identifier: Apache-2.0

package client

import (
	"math/rand/v2"
	"time"
)

// backoff is the pauses between attempts: the first, then twice as long each time
// up to the last.
type backoff struct {
	times times
	next  time.Duration
}

// pause returns how long to wait: from half the step to the whole of it, so that
// the clients of a server that comes back do not all arrive in one moment.
func (b *backoff) pause() time.Duration {
	step := max(b.next, b.times.backoffFirst)
	b.next = min(2*step, b.times.backoffLast)
	half := step / 2
	return half + rand.N(half+1)
}

// reset begins again, if a connection lived long enough: a server that takes
// connections and drops them is not dialed ten times a second.
func (b *backoff) reset(lived time.Duration) {
	if lived >= b.times.settled {
		b.next = 0
	}
}
