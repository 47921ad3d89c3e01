// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A policy of the library tells of what it is asked for, and pauses from 100 ms up to
// 3 s, half of each at least.
func TestBackoff(t *testing.T) {
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	make := Backoff(Hooks{Began: func() { tell("began") }, Failed: func(n int) { tell("failed %d", n) }, Back: func() { tell("back") }})
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
	want := "began, failed 1, failed 2, failed 3, failed 4, failed 5, failed 6, failed 7, back, failed 1"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	none := Backoff(Hooks{})()
	none.Next()
	none.Reset()
}
