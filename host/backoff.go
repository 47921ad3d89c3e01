// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math/rand/v2"
	"time"
)

// jitterShare is how much of a delay the jitter may take away: half is enough
// to pull apart messages that failed together, and keeps delays growing.
const jitterShare = 0.5

// backoffDelay returns the delay before the retry of an attempt: first doubled
// for each attempt after the first, at most longest. An unknown attempt (0)
// counts as the first.
func backoffDelay(first, longest time.Duration, attempt uint64) time.Duration {
	d := first
	for i := uint64(1); i < attempt; i++ {
		if d >= longest/2 {
			return longest
		}
		d *= 2
	}
	return min(d, longest)
}

// jittered draws from the upper part of d.
func jittered(d time.Duration) time.Duration {
	return d - time.Duration(jitterShare*rand.Float64()*float64(d))
}
