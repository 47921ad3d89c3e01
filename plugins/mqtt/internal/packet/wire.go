// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// vbi reads a Variable Byte Integer (1.5.5) at the beginning of b: n is how many
// bytes it takes, 0 = it has not arrived whole, negative = it is none.
func vbi(b []byte) (v uint32, n int) {
	for i := range min(len(b), 4) {
		v |= uint32(b[i]&0x7F) << (7 * i)
		if b[i] < 0x80 {
			if i > 0 && b[i] == 0 {
				return 0, -1 // not the fewest bytes
			}
			return v, i + 1
		}
	}
	if len(b) >= 4 {
		return 0, -1
	}
	return 0, 0
}

// vbiSize is how many bytes appendVBI appends.
func vbiSize(v int) int {
	switch {
	case v < 1<<7:
		return 1
	case v < 1<<14:
		return 2
	case v < 1<<21:
		return 3
	default:
		return 4
	}
}

// appendVBI appends a Variable Byte Integer of at most MaxRemaining.
func appendVBI(dst []byte, v int) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// cutString takes a string or binary data off b; it reports false where that
// does not stand there whole.
func cutString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	if len(b) < n {
		return nil, nil, false
	}
	return b[2:n:n], b[n:], true
}

// cutProperties takes a property block off b, without its length.
func cutProperties(b []byte) (block, rest []byte, ok bool) {
	size, n := vbi(b)
	if n <= 0 || len(b)-n < int(size) {
		return nil, nil, false
	}
	end := n + int(size)
	return b[n:end:end], b[end:], true
}

// AppendString appends a string or binary data of at most MaxString bytes.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}
