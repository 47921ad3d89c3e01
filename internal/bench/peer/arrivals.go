// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"encoding/binary"
	"sync/atomic"
	"time"
)

// Arrivals counts messages that have arrived, and says when.
type Arrivals struct {
	Trips // of those that are stamped

	n           atomic.Uint64
	first, last atomic.Int64 // Unix nanoseconds
}

// Add adds messages that have arrived now; payload is that of one of them.
func (a *Arrivals) Add(n int, payload []byte) {
	now := time.Now().UnixNano()
	if sent := stamped(payload); sent != 0 {
		a.Trips.Add(time.Duration(now - sent))
	}
	a.first.CompareAndSwap(0, now)
	a.last.Store(now)
	a.n.Add(uint64(n))
}

// Count is how many have arrived.
func (a *Arrivals) Count() uint64 { return a.n.Load() }

// Tell writes into s what has arrived.
func (a *Arrivals) Tell(s *State) {
	s.Messages = a.n.Load()
	s.First, s.Last = a.first.Swap(0), a.last.Load()
	s.P50, s.P99 = a.Take()
}

// stampSize is that of a stamp, at the beginning of a payload.
const stampSize = 8

// Stamp writes the time into a payload that has room for it.
func Stamp(payload []byte) {
	if len(payload) >= stampSize {
		binary.LittleEndian.PutUint64(payload, uint64(time.Now().UnixNano()))
	}
}

// stamped is when a payload was stamped, in Unix nanoseconds, 0 of one that was
// not: those of benchmarks are zeroes.
func stamped(payload []byte) int64 {
	if len(payload) < stampSize {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(payload))
}
