// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
)

func TestBackoffDelay(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name string
		b    core.Backoff
		draw float64
		want []time.Duration
	}{
		{"doubles to max by default", core.Backoff{First: 100 * ms, Max: 500 * ms}, 0, []time.Duration{100 * ms, 200 * ms, 400 * ms, 500 * ms, 500 * ms}},
		{"constant without max", core.Backoff{First: 100 * ms}, 0, []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		{"constant by multiplier", core.Backoff{First: 100 * ms, Max: time.Second, Multiplier: 1}, 0, []time.Duration{100 * ms, 100 * ms}},
		{"jitter shortens", core.Backoff{First: 100 * ms, Max: 400 * ms, Jitter: 0.5}, 1, []time.Duration{50 * ms, 100 * ms, 200 * ms, 200 * ms}},
		{"zero declares nothing", core.Backoff{}, 0.5, []time.Duration{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []time.Duration
			for n := range tt.want {
				got = append(got, tt.b.Delay(uint64(n+1), tt.draw))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("delays differ (-want +got):\n%s", d)
			}
		})
	}
	b := core.Backoff{First: 100 * ms, Max: time.Hour}
	if got := b.Delay(0, 0); got != 100*ms {
		t.Errorf("delay of an unknown attempt is %s, want the first", got)
	}
	if got := b.Delay(math.MaxUint64, 0); got != time.Hour {
		t.Errorf("delay of the last attempt there is is %s, want the longest", got)
	}
}

func TestBackoffValid(t *testing.T) {
	for _, tt := range []struct {
		b     core.Backoff
		field string
	}{
		{core.Backoff{}, ""},
		{core.Backoff{First: 1, Max: 2, Multiplier: 1.5, Jitter: 1}, ""},
		{core.Backoff{First: -1}, "First"},
		{core.Backoff{Max: -1}, "Max"},
		{core.Backoff{First: 2, Max: 1}, "Max"},
		{core.Backoff{Multiplier: 0.5}, "Multiplier"},
		{core.Backoff{Multiplier: math.NaN()}, "Multiplier"},
		{core.Backoff{Multiplier: math.Inf(1)}, "Multiplier"},
		{core.Backoff{Jitter: 1.1}, "Jitter"},
		{core.Backoff{Jitter: math.NaN()}, "Jitter"},
	} {
		err := tt.b.Valid()
		var got *core.BackoffError
		switch {
		case tt.field == "" && err != nil:
			t.Errorf("%+v: %v", tt.b, err)
		case tt.field != "" && (!errors.As(err, &got) || got.Field != tt.field):
			t.Errorf("%+v: got %v, want a *BackoffError about %s", tt.b, err, tt.field)
		}
	}
}

// A delay is never negative, never above the longest, and without jitter it
// never shrinks.
func TestBackoffStaysWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := core.Backoff{
			First:      time.Duration(rapid.Int64Range(0, int64(290*365*24*time.Hour)).Draw(t, "first")),
			Multiplier: rapid.Float64Range(1, 1e9).Draw(t, "multiplier"),
			Jitter:     rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		if rapid.Bool().Draw(t, "with max") {
			b.Max = time.Duration(rapid.Int64Range(int64(b.First), math.MaxInt64).Draw(t, "max"))
		}
		if err := b.Valid(); err != nil {
			t.Fatal(err)
		}
		n := rapid.Uint64().Draw(t, "attempt")
		d := b.Delay(n, rapid.Float64Range(0, 1).Draw(t, "draw"))
		if d < 0 || d > b.Longest() {
			t.Fatalf("delay after %d is %d, longest %d", n, d, b.Longest())
		}
		if plain := b.Delay(n, 0); n < math.MaxUint64 && b.Delay(n+1, 0) < plain {
			t.Fatalf("delay shrinks after %d", n)
		}
	})
}
