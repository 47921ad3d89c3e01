// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Lines that come faster than one a second are held back, and the last of them is
// told when it is due: nothing that happened goes untold because something else
// had just been.
func TestNoticesHoldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Notice
		var got []string
		began := time.Now()
		say := func(what string) bool {
			return n.say(func(times int) { got = append(got, fmt.Sprint(what, " ", times, " ", time.Since(began))) })
		}
		if say("one") {
			t.Error("the first one is held back")
		}
		if !say("two") || !say("three") {
			t.Error("the next ones are not held back")
		}
		next := n.flush(time.Now())
		if !next.Equal(began.Add(noticeEvery)) {
			t.Errorf("the next one is due after %v", next.Sub(began))
		}
		time.Sleep(time.Until(next))
		if !n.flush(time.Now()).IsZero() || !n.flush(time.Now().Add(time.Hour)).IsZero() {
			t.Error("something is held back still")
		}
		time.Sleep(time.Hour)
		say("four")
		if diff := cmp.Diff([]string{"one 1 0s", "three 2 1s", "four 1 1h0m1s"}, got); diff != "" {
			t.Error(diff)
		}
	})
}
