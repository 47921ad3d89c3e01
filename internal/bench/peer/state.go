// SPDX-License-Identifier: Apache-2.0

// Package peer starts the other ends of the connections that are measured:
// processes that send, read or answer by a library of their own, and say what
// they have done.
package peer

import (
	"slices"
	"sync"
	"time"
)

// Address is the first thing a peer says.
type Address struct {
	Address string `json:"address"` // that it is bound to, or dials
}

// State is what a peer has done since it started.
type State struct {
	Messages uint64        `json:"messages"` // sent, read or answered
	CPU      time.Duration `json:"cpu_ns"`   // user and system
	Allocs   uint64        `json:"allocs"`   // heap objects, 0 = not known
	// P50 and P99 are of the round trips since the answer before, 0 = none.
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	// First is when the first message since the answer before arrived, 0 = none
	// has, or it is not known; Last is when the last one did.
	First int64 `json:"first,omitempty"` // Unix nanoseconds
	Last  int64 `json:"last,omitempty"`
}

// Trips are the round trips since they were last asked for.
type Trips struct {
	mu    sync.Mutex
	times []time.Duration
}

// Add adds one.
func (t *Trips) Add(d time.Duration) {
	t.mu.Lock()
	t.times = append(t.times, d)
	t.mu.Unlock()
}

// Take returns their percentiles, 0 of none, and forgets them.
func (t *Trips) Take() (p50, p99 time.Duration) {
	t.mu.Lock()
	times := t.times
	t.times = nil
	t.mu.Unlock()
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	return times[len(times)/2], times[len(times)*99/100]
}
