// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"strings"

	"golang.org/x/sys/cpu"
)

// Long text is decoded thirty-two characters at a time. Which class of character
// one is, and how far its value is from it, is looked up by its upper four bits;
// whether it is of the alphabet, by both halves.
type vectors struct {
	upper, lower [16]byte // both have a bit where upper and lower make no character
	offset       [16]byte // of the value from the character; that of '/' stands at 1
	half, slash  [16]byte // masks: the lower four bits, and a '/' in every byte
	pairs        [16]byte // factors that make twelve bits of two values,
	fours        [16]byte // and twenty-four of two of those
	order        [16]byte // where the bytes of those belong
}

var (
	canVector = cpu.X86.HasAVX2
	byVectors = newVectors()
)

func newVectors() *vectors {
	v := &vectors{}
	const never = 1 << 7
	for i := range 16 {
		v.upper[i], v.lower[i] = never, never
		v.half[i], v.slash[i] = 0x0f, '/'
		v.pairs[i] = [...]byte{1 << 6, 1}[i%2]
		v.fours[i] = [...]byte{0, 1 << 4, 1, 0}[i%4] // 1<<12 and 1, sixteen bits each
		v.order[i] = never
	}
	for i := range 12 {
		v.order[i] = byte(i/3*4 + 2 - i%3)
	}
	for upper := 2; upper < 8; upper++ {
		class := byte(1) << (upper - 2)
		v.upper[upper] = class
		for lower := range 16 {
			c := byte(upper<<4 | lower)
			value := strings.IndexByte(alphabet, c)
			switch {
			case value < 0:
				v.lower[lower] |= class
			case c == '/':
				v.offset[1] = byte(value) - c
			default:
				v.offset[upper] = byte(value) - c
			}
		}
	}
	return v
}

const (
	vectorText  = 32 // characters a step,
	vectorBytes = 24 // and their bytes
	// vectorRest is how many characters are left to others: a step writes four
	// bytes beyond its own.
	vectorRest = 8
)

// decodeVectors decodes steps times vectorText characters. It reports whether
// all are of the alphabet.
//
//go:noescape
func decodeVectors(dst, text *byte, steps int, v *vectors) bool

// decodeLong decodes as much of text as it can decode quickly and returns what
// is left, and false where a character was none of the alphabet.
func decodeLong(dst, text []byte) (restDst, restText []byte, ok bool) {
	steps := (len(text) - vectorRest) / vectorText
	if steps <= 0 || !canVector {
		return dst, text, true
	}
	_ = dst[steps*vectorBytes+vectorRest/2-1]
	ok = decodeVectors(&dst[0], &text[0], steps, byVectors)
	return dst[steps*vectorBytes:], text[steps*vectorText:], ok
}
