// SPDX-License-Identifier: Apache-2.0

//go:build race || poison

package frame

// poison overwrites what is given back, so that a use after release shows as
// garbage in every test that runs with the race detector or the tag poison.
func poison(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = 0xDB
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
