// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"
	"time"
)

// flow is a server's sending, read by a pace.
type flow struct {
	every  time.Duration // a packet comes
	each   int           // packets at a time
	closed bool          // each comes only when the last was read

	pace   pace
	now    time.Duration
	waited time.Duration
	ready  float64 // packets that have come and were not read
}

// run reads for a time and returns what part of it was waited.
func (f *flow) run(d time.Duration) float64 {
	f.waited = 0
	began := f.now
	for f.now-began < d {
		f.now += f.every // at least: Fill waits
		came := float64(f.each)
		if !f.closed {
			came += f.ready
		}
		f.ready = 0
		wait := f.pace.next(int64(f.now), int(came))
		f.now += wait
		f.waited += wait
		f.ready = float64(wait) / float64(f.every) * float64(f.each)
	}
	return float64(f.waited) / float64(d)
}

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		name        string
		flow        flow
		least, most float64 // of the time
	}{
		{"one after the other", flow{every: 15 * time.Microsecond, each: 1}, 0.9, 1},
		{"some at a time", flow{every: 50 * time.Microsecond, each: 4}, 0.8, 1},
		{"slow", flow{every: 300 * time.Microsecond, each: 1}, 0, 0},
		{"many at a time", flow{every: 100 * time.Microsecond, each: 40}, 0, 0},
		{"one answer at a time", flow{every: 100 * time.Microsecond, each: 1, closed: true}, 0, 0.02},
		{"ten answers at a time", flow{every: 100 * time.Microsecond, each: 10, closed: true}, 0, 0.02},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.flow.run(5 * time.Second)
			if got := tt.flow.run(20 * time.Second); got < tt.least || got > tt.most {
				t.Errorf("it waited %.3f of the time, want %v to %v", got, tt.least, tt.most)
			}
		})
	}
}

// TestPaceOfAFlowThatEnds: what comes alone later does not wait.
func TestPaceOfAFlowThatEnds(t *testing.T) {
	f := flow{every: 15 * time.Microsecond, each: 1}
	if f.run(time.Second); !f.pace.waits {
		t.Fatal("it does not wait in a flow")
	}
	f.ready = 0
	f.every = 100 * time.Millisecond
	f.run(time.Nanosecond) // the read that shows it
	if got := f.run(10 * time.Second); got != 0 {
		t.Errorf("it waited %v of the time", got)
	}
	f.every = 15 * time.Microsecond
	if f.run(time.Second); !f.pace.waits {
		t.Error("it does not wait in the next flow")
	}
}

// TestPaceOfAFlowThatFalls: a rate that falls by itself ends the waits for a
// moment only.
func TestPaceOfAFlowThatFalls(t *testing.T) {
	f := flow{every: 15 * time.Microsecond, each: 1}
	f.run(time.Second)
	f.every = 60 * time.Microsecond
	if got := f.run(5 * time.Second); got < 0.8 {
		t.Errorf("it waited %.3f of the time", got)
	}
}
