// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestScheduleDelays(t *testing.T) {
	for name, c := range map[string]struct {
		s    Schedule
		want []time.Duration // from attempt 0, the unknown one, on
	}{
		"constant":               {Constant(100 * ms), []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		"linear":                 {Linear(100*ms, 250*ms), []time.Duration{100 * ms, 100 * ms, 200 * ms, 250 * ms, 250 * ms}},
		"linear that ends sharp": {Linear(100*ms, 200*ms), []time.Duration{100 * ms, 100 * ms, 200 * ms, 200 * ms}},
		"exponential":            {Exponential(100*ms, 500*ms), []time.Duration{100 * ms, 100 * ms, 200 * ms, 400 * ms, 500 * ms, 500 * ms}},
		"one length throughout":  {Exponential(100*ms, 100*ms), []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		"a list":                 {Delays(0, time.Minute, time.Second), []time.Duration{0, 0, time.Minute, time.Second, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := c.s.wrong(); wrong != nil {
				t.Fatalf("refused: %v", *wrong)
			}
			var got []time.Duration
			for attempt := range c.want {
				got = append(got, c.s.delay(uint64(attempt)))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
			if got := c.s.delay(math.MaxUint64); got != c.want[len(c.want)-1] {
				t.Errorf("the last attempt there is: got %v, want %v", got, c.want[len(c.want)-1])
			}
		})
	}
}

func TestJitterTakesItsShare(t *testing.T) {
	for name, c := range map[string]struct {
		s             Schedule
		least, beyond time.Duration // what is drawn, and what is drawn at least once
	}{
		"full by default": {Constant(time.Second), 1, time.Second / 2},
		"full":            {Constant(time.Second).Jitter(1), 1, time.Second / 2},
		"a fifth":         {Constant(time.Second).Jitter(0.2), 800 * ms, 900 * ms},
		"none":            {Constant(time.Second).Jitter(0), time.Second, time.Second + 1},
	} {
		t.Run(name, func(t *testing.T) {
			below, upper := false, false
			for range 1000 {
				got := c.s.draw(1)
				if got < c.least || got > time.Second {
					t.Fatalf("got %v, want %v to 1s", got, c.least)
				}
				below, upper = below || got < c.beyond, upper || got >= (c.least+time.Second)/2
			}
			if !below || !upper {
				t.Errorf("below %v: %t, in the upper half: %t", c.beyond, below, upper)
			}
		})
	}
}

// A wait is above 0 where the delay is, never above it; a delay is never above
// the longest, and but for a list it never shrinks.
func TestScheduleStaysWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "first"))
		longest := time.Duration(rapid.Int64Range(int64(first), math.MaxInt64).Draw(t, "longest"))
		s := rapid.SampledFrom([]Schedule{
			Constant(longest), Linear(first, longest), Exponential(first, longest), Delays(longest, 0, first),
		}).Draw(t, "schedule").Jitter(rapid.Float64Range(0, 1).Draw(t, "jitter"))
		if wrong := s.wrong(); wrong != nil {
			t.Fatal(*wrong)
		}
		n := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 70)).Draw(t, "attempt")
		d := s.delay(n)
		if d < 0 || d > longest {
			t.Fatalf("delay after %d is %v, longest %v", n, d, longest)
		}
		if w := s.draw(n); w > d || w <= 0 && d > 0 {
			t.Fatalf("wait after %d is %v of %v", n, w, d)
		}
		if s.kind != scheduleListed && n < math.MaxUint64 && s.delay(n+1) < d {
			t.Fatalf("delay shrinks after %d", n)
		}
	})
}
