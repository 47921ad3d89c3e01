// SPDX-License-Identifier: Apache-2.0

package client

import (
	"math/rand/v2"
	"time"
)

// pauses are waits between tries: the first, then twice as long each time up to the
// last. They are for one goroutine.
type pauses struct {
	first, last time.Duration
	step        time.Duration // 0 = the first comes next
}

// next returns how long to wait: from half the step to the whole of it, so that the
// clients of a broker that comes back do not all arrive in one moment.
func (p *pauses) next() time.Duration {
	step := max(p.step, p.first)
	p.step = min(2*step, p.last)
	half := step / 2
	return half + rand.N(half+1)
}

// reset has the first come next.
func (p *pauses) reset() { p.step = 0 }
