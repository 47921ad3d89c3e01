// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Names of headers are looked at wherever they differ from those before.
func TestNamesOfHeadersAreLookedAt(t *testing.T) {
	var r receiver
	names := []string{"", "x-a", "x-\xff", "x-a", "\xff", "x-\u00fc", strings.Repeat("n", longName+1), strings.Repeat("n", longName) + "\xff"}
	for round := range 40 {
		for i := range 12 {
			name := names[(round*5+i*i)%len(names)]
			if got, want := r.legible(i, name), utf8.ValidString(name); got != want {
				t.Fatalf("header %d, %q: %v, want %v", i, name, got, want)
			}
		}
	}
}
