// SPDX-License-Identifier: Apache-2.0

package format

import "golang.org/x/sys/cpu"

// Long payloads are folded: sixty-four bytes at a time are replaced by what has
// the same checksum further on, by multiplication without carries, until
// sixteen are left.
const (
	folded  = 64 // bytes a step
	folding = 2 * folded
)

var canFold = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSSE3

// foldBy are the remainders of x to the power of the distance in bits over which
// sixteen bytes are folded, for their last eight and their first eight: four
// blocks on in the loop, then three, two and one.
var foldBy = [4][2]uint64{
	{power(512), power(512 + 64)},
	{power(384), power(384 + 64)},
	{power(256), power(256 + 64)},
	{power(128), power(128 + 64)},
}

// power is x to the power n, modulo the polynomial.
func power(n int) uint64 {
	r := uint64(1)
	for range n {
		if r <<= 1; r>>16 != 0 {
			r ^= 1<<16 | polynomial
		}
	}
	return r
}

// fold leaves in rest what has, begun with zero, the checksum of p begun with
// crc. The length of p is a multiple of folded, and not 0.
//
//go:noescape
func fold(rest *[16]byte, crc uint16, p []byte, by *[4][2]uint64)

// extendLong takes as much of p as it can take quickly and returns what is left.
func extendLong(crc uint16, p []byte) (uint16, []byte) {
	if len(p) < folding || !canFold {
		return crc, p
	}
	n := len(p) / folded * folded
	var rest [16]byte
	fold(&rest, crc, p[:n], &foldBy)
	return extend(0, rest[:]), p[n:]
}
