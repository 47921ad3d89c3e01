// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"testing"
	"time"
)

func TestBackoffDelay(t *testing.T) {
	const first, longest = 100 * time.Millisecond, 5 * time.Second
	for name, c := range map[string]struct {
		attempt uint64
		want    time.Duration
	}{
		"unknown attempt":      {0, first},
		"first attempt":        {1, first},
		"second":               {2, 200 * time.Millisecond},
		"third":                {3, 400 * time.Millisecond},
		"the longest":          {7, longest},
		"far beyond":           {1000, longest},
		"the largest there is": {math.MaxUint64, longest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := backoffDelay(first, longest, c.attempt); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if got := backoffDelay(math.MaxInt64/2+1, math.MaxInt64, 9); got != math.MaxInt64 {
		t.Errorf("300 years: got %v", got)
	}
}

func TestJitterStaysWithinHalf(t *testing.T) {
	for range 1000 {
		if got := jittered(time.Second); got > time.Second || got < time.Second/2 {
			t.Fatalf("got %v of 1s", got)
		}
	}
}
