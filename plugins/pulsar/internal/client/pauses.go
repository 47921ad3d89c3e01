// SPDX-License-Identifier: Apache-2.0

package client

import (
	"math/rand/v2"
	"time"
)

// Pauses are waits between tries: the first, then twice as long each time up to the
// last. They are for one goroutine.
type Pauses struct {
	First, Last time.Duration
	step        time.Duration // 0 = the first comes next
}

// Reconnecting returns the pauses of a consumer or producer that has lost its broker:
// from 100 ms up to 3 s.
func Reconnecting() Pauses { return Pauses{First: 100 * time.Millisecond, Last: 3 * time.Second} }

// Next returns how long to wait: from half the step to the whole of it, so that the
// clients of a broker that comes back do not all arrive in one moment.
func (p *Pauses) Next() time.Duration {
	step := max(p.step, p.First)
	p.step = min(2*step, p.Last)
	half := step / 2
	return half + rand.N(half+1)
}

// Reset has the first come next.
func (p *Pauses) Reset() { p.step = 0 }
