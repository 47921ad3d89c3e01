// SPDX-License-Identifier: Apache-2.0

package client

import (
	"math/rand/v2"
	"time"

	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

// The pauses of a consumer or producer of the library that has lost its broker.
const (
	reconnectFirst = 100 * time.Millisecond
	reconnectLast  = 3 * time.Second
)

// Hooks are told how a consumer or producer of the library reconnects. Each may be
// nil. They are called by a goroutine of the library, which does nothing else
// meanwhile, so they must not block, nor close what reconnects.
type Hooks struct {
	// Began is called when the broker is lost and the first try begins. A consumer's
	// GetLastMessageIDs calls it too, for the library makes a policy for its tries.
	Began func()
	// Back is called when a try has succeeded. Where the library gives up, because the
	// topic is gone, nothing follows Began.
	Back func()
}

// Backoff returns what the library takes as BackOffPolicyFunc: pauses from 100 ms,
// then twice as long each time up to 3 s, each from half of that to the whole.
func Backoff(h Hooks) func() backoff.Policy {
	return func() backoff.Policy {
		if h.Began != nil {
			h.Began()
		}
		return &policy{hooks: h, pauses: pauses{first: reconnectFirst, last: reconnectLast}}
	}
}

// policy is one time that something reconnects. The library uses it from one
// goroutine.
type policy struct {
	hooks  Hooks
	pauses pauses
}

// Next is called after a failed try.
func (p *policy) Next() time.Duration { return p.pauses.next() }

// IsMaxBackoffReached only decides what the library counts in its metrics.
func (p *policy) IsMaxBackoffReached() bool { return false }

// Reset is called when a try has succeeded.
func (p *policy) Reset() {
	p.pauses.reset()
	if p.hooks.Back != nil {
		p.hooks.Back()
	}
}

// pauses are waits between tries: the first, then twice as long each time up to the
// last.
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

func (p *pauses) reset() { p.step = 0 }
