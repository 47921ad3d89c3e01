// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"testing"
	"time"
)

func TestArrivals(t *testing.T) {
	var a Arrivals
	tell := func() (s State) { a.Tell(&s); return s }
	if s := tell(); s != (State{}) {
		t.Errorf("nothing is told as %+v", s)
	}
	began := time.Now().UnixNano()
	plain, stamped := make([]byte, 64), make([]byte, 64)
	Stamp(stamped)
	a.Add(2, plain)
	a.Add(1, stamped)
	s := tell()
	if s.Messages != 3 || s.First < began || s.Last < s.First || s.P50 <= 0 || s.P50 != s.P99 {
		t.Errorf("three, one of them stamped, are told as %+v", s)
	}
	if again := tell(); again.First != 0 || again.Last != s.Last || again.P50 != 0 || again.Messages != 3 {
		t.Errorf("nothing more is told as %+v", again)
	}
	a.Add(1, nil)
	if more := tell(); more.First < s.Last || more.Messages != 4 {
		t.Errorf("one more is told as %+v", more)
	}
	Stamp(nil) // there is no room
}
