// SPDX-License-Identifier: Apache-2.0

package zmqtest

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what takes moments, on a machine that has
// much else to do.
const Patience = 2 * time.Minute

// Until waits for a condition, and ends the test where it does not come to hold
// within [Patience].
func Until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	deadline := time.Now().Add(Patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", Patience, what)
		}
		<-tick.C
	}
}
