// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"
	"time"
)

// Pauses grow from the first to the last, half of each at least.
func TestPauses(t *testing.T) {
	p := pauses{first: 100 * time.Millisecond, last: 3 * time.Second}
	for _, step := range []time.Duration{100, 200, 400, 800, 1600, 3000, 3000} {
		step *= time.Millisecond
		if d := p.next(); d < step/2 || d > step {
			t.Errorf("got a pause of %v; want one from %v to %v", d, step/2, step)
		}
	}
	p.reset()
	if d := p.next(); d > 100*time.Millisecond {
		t.Errorf("got a pause of %v behind a success", d)
	}
}
