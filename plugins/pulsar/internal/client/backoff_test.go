// SPDX-License-Identifier: Apache-2.0

package client

import (
	"strings"
	"testing"
	"time"
)

// A policy of the library tells of what it is asked for, and pauses from 100 ms up to
// 3 s, half of each at least.
func TestBackoff(t *testing.T) {
	var told []string
	make := Backoff(Hooks{Began: func() { told = append(told, "began") }, Back: func() { told = append(told, "back") }})
	if len(told) != 0 {
		t.Fatalf("it has told %q before anything began", told)
	}
	p := make()
	for _, step := range []time.Duration{100, 200, 400, 800, 1600, 3000, 3000} {
		step *= time.Millisecond
		if d := p.Next(); d < step/2 || d > step {
			t.Errorf("got a pause of %v; want one from %v to %v", d, step/2, step)
		}
		if p.IsMaxBackoffReached() {
			t.Error("there is an end of its tries")
		}
	}
	p.Reset()
	if d := p.Next(); d > 100*time.Millisecond {
		t.Errorf("got a pause of %v behind a success", d)
	}
	make()
	if got := strings.Join(told, ", "); got != "began, back, began" {
		t.Errorf("it has told %s", got)
	}
	none := Backoff(Hooks{})()
	none.Next()
	none.Reset()
}
