// SPDX-License-Identifier: Apache-2.0

//go:build race

package frame

// poison overwrites what is given back, so that a use after release shows as
// garbage in every test that runs with the race detector.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
