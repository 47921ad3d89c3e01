// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"testing"
	"time"
)

func TestStretch(t *testing.T) {
	for _, tt := range []struct {
		loadavg string
		want    float64
	}{
		{"0.00 0.00 0.00 0/140 1613\n", 1},
		{"0.50 0.40 0.30 1/740 1613\n", 1.5},
		{"2.00 9.00 9.00 1/740 1613\n", 2},
		{"0.50 0.40 0.30 6/740 1613\n", 4},
		{"90.50 0.40 0.30 6/740 1613\n", mostStretch},
		{"", 1},
		{"none of 4 numbers", 1},
	} {
		if got := stretch([]byte(tt.loadavg), 2); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.loadavg, got, tt.want)
		}
	}
	if got := stretched(time.Second); got < time.Second || got > mostStretch*time.Second {
		t.Errorf("got %v of a second", got)
	}
}
