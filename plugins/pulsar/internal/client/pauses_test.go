// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"
	"time"
)

// Pauses grow from 100 ms up to 3 s, half of each at least.
func TestPauses(t *testing.T) {
	p := Reconnecting()
	for _, step := range []time.Duration{100, 200, 400, 800, 1600, 3000, 3000} {
		step *= time.Millisecond
		if d := p.Next(); d < step/2 || d > step {
			t.Errorf("got a pause of %v; want one from %v to %v", d, step/2, step)
		}
	}
	p.Reset()
	if d := p.Next(); d > 100*time.Millisecond {
		t.Errorf("got a pause of %v behind a success", d)
	}
}
