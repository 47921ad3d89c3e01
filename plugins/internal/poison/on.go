// SPDX-License-Identifier: Apache-2.0

//go:build race || poison

package poison

// On says that memory is overwritten.
const On = true

// Bytes overwrites b.
func Bytes(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = Byte
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
