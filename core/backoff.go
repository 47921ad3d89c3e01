// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"math"
	"time"
)

// Backoff is a schedule of delays between attempts: First, then Multiplier
// times more after every attempt, never above Max. The zero value declares
// nothing.
type Backoff struct {
	First      time.Duration // after the first attempt
	Max        time.Duration // 0 = First, so that the delay stays the same
	Multiplier float64       // 0 = 2
	Jitter     float64       // largest share of a delay that is taken off, 0 to 1
}

// defaultMultiplier doubles the delay from attempt to attempt.
const defaultMultiplier = 2

// A BackoffError says which field of a Backoff makes no sense.
type BackoffError struct {
	Field  string
	Reason string
	Fix    string
}

// Error names the field, the reason and the fix.
func (e *BackoffError) Error() string {
	return fmt.Sprintf("check backoff: %s: %s; %s", e.Field, e.Reason, e.Fix)
}

// Valid returns a *BackoffError, or nil.
func (b Backoff) Valid() error {
	switch {
	case b.First < 0:
		return &BackoffError{"First", fmt.Sprintf("%s is negative", b.First), "use 0 or more"}
	case b.Max < 0:
		return &BackoffError{"Max", fmt.Sprintf("%s is negative", b.Max), "use 0 for the first delay throughout"}
	case b.Max != 0 && b.Max < b.First:
		return &BackoffError{"Max", fmt.Sprintf("%s is below the first delay %s", b.Max, b.First), "raise it, or lower First"}
	case b.Multiplier != 0 && !(b.Multiplier >= 1 && b.Multiplier <= math.MaxFloat64):
		return &BackoffError{"Multiplier", fmt.Sprintf("%g is not a number of 1 or more", b.Multiplier), "use 1 for a constant delay, 0 for the default of 2"}
	case !(b.Jitter >= 0 && b.Jitter <= 1):
		return &BackoffError{"Jitter", fmt.Sprintf("%g is not a share from 0 to 1", b.Jitter), "use 0.2 for up to a fifth"}
	}
	return nil
}

// Longest returns the longest delay that Delay ever gives.
func (b Backoff) Longest() time.Duration { return max(b.First, b.Max) }

// Delay returns the wait after the given attempt, the first being 1; 0
// (unknown) counts as the first. draw is a random number from 0 to 1 that the
// caller draws: that much of the jitter is taken off.
func (b Backoff) Delay(attempt uint64, draw float64) time.Duration {
	d := float64(b.First)
	longest := float64(b.Longest())
	m := b.Multiplier
	if m == 0 {
		m = defaultMultiplier
	}
	if attempt > 1 && d > 0 {
		d *= math.Pow(m, float64(attempt-1))
	}
	if !(d < longest) { // also where it is too large for a number
		d = longest
	}
	d -= d * b.Jitter * min(max(draw, 0), 1)
	if d >= longest {
		return b.Longest() // not by way of a float, which may round it up
	}
	return time.Duration(d)
}
