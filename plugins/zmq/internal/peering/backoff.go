// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"math/rand/v2"
	"time"
)

// A peer that does not answer is dialed after 100 ms, then after twice as long
// each time. A file on this machine costs nothing to dial, so the one that
// listens there again has its peers within a second.
const (
	backoffFirst   = 100 * time.Millisecond
	backoffLastTCP = 5 * time.Second
	backoffLastIPC = 800 * time.Millisecond
)

// settled is how long a peer stays before the pauses begin from the first again:
// one that takes connections and drops them is not dialed ten times a second.
const settled = time.Second

// backoff is the pauses of one dial loop.
type backoff struct {
	last   time.Duration
	next   time.Duration
	random func() float64 // in [0, 1); nil = math/rand's
}

func newBackoff(a Address) *backoff {
	if a.Network == IPC {
		return &backoff{last: backoffLastIPC}
	}
	return &backoff{last: backoffLastTCP}
}

// pause returns how long to wait: from half the step to the whole of it, so that
// the peers of one that comes back do not all arrive in one moment.
func (b *backoff) pause() time.Duration {
	step := max(b.next, backoffFirst)
	b.next = min(2*step, b.last)
	random := b.random
	if random == nil {
		random = rand.Float64
	}
	half := step / 2
	return half + time.Duration(random()*float64(half))
}

// reset begins again, if a peer stayed long enough.
func (b *backoff) reset(stayed time.Duration) {
	if stayed >= settled {
		b.next = 0
	}
}
