// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"sync"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// toText holds the two characters of twelve bits, the first one in the low
// byte.
var toText = sync.OnceValue(func() *[1 << 12]uint16 {
	t := new([1 << 12]uint16)
	for i := range t {
		t[i] = uint16(alphabet[i>>6]) | uint16(alphabet[i&63])<<8
	}
	return t
})

// noBits are the bits of two characters that are not both of the alphabet: more
// than twelve.
const noBits = 0xffff

// toBits holds the twelve bits of two characters, the first one in the low
// byte of the index. Text that decodes uses 14 KiB of it.
var toBits = sync.OnceValue(func() *[1 << 16]uint16 {
	t := new([1 << 16]uint16)
	for i := range t {
		t[i] = noBits
	}
	for i, c := range []byte(alphabet) {
		for k, d := range []byte(alphabet) {
			t[int(c)|int(d)<<8] = uint16(i<<6 | k)
		}
	}
	return t
})

// textLen is how many characters n bytes take.
func textLen(n int) int { return (n + 2) / 3 * 4 }

// encode fills dst with the padded text of src. Both may share their end, which
// textLen makes the place where writing never overtakes reading.
func encode(dst, src []byte) {
	t := toText()
	for len(src) >= 8 && len(dst) >= 8 {
		v := binary.BigEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, uint64(t[v>>52])|uint64(t[v>>40&0xfff])<<16|
			uint64(t[v>>28&0xfff])<<32|uint64(t[v>>16&0xfff])<<48)
		src, dst = src[6:], dst[8:]
	}
	for len(src) >= 3 {
		v := uint32(src[0])<<16 | uint32(src[1])<<8 | uint32(src[2])
		binary.LittleEndian.PutUint32(dst, uint32(t[v>>12])|uint32(t[v&0xfff])<<16)
		src, dst = src[3:], dst[4:]
	}
	switch len(src) {
	case 1:
		binary.LittleEndian.PutUint32(dst, uint32(t[int(src[0])<<4])|'='<<16|'='<<24)
	case 2:
		v := uint32(src[0])<<16 | uint32(src[1])<<8
		binary.LittleEndian.PutUint32(dst, uint32(t[v>>12])|uint32(t[v&0xfff]&0xff)<<16|'='<<24)
	}
}

// decodeSlack is how many bytes beyond what it decodes decode may write.
const decodeSlack = 2

// decodedLen is how many bytes text decodes to, if it does. It reports false
// where the length of text is none of base64.
func decodedLen(text []byte) (int, bool) {
	n := len(text)
	if n%4 != 0 {
		return 0, false
	}
	if n > 0 && text[n-1] == '=' {
		if text[n-2] == '=' {
			return n/4*3 - 2, true
		}
		return n/4*3 - 1, true
	}
	return n / 4 * 3, true
}

// decode fills dst with the bytes of text: standard base64 with padding, with
// no other character between and no bit set that belongs to no byte. The length
// of text is one that decodedLen takes, dst has decodeSlack bytes more than
// decodedLen says.
func decode(dst, text []byte) bool {
	if len(text) == 0 {
		return true
	}
	t := toBits()
	last := text[len(text)-4:]
	dst, text, ok := decodeLong(dst, text[:len(text)-4])
	if !ok {
		return false
	}
	dst, text, seen := decodeWords(t, dst, text)
	if len(text) >= 4 {
		a, b := uint32(t[binary.LittleEndian.Uint16(text)]), uint32(t[binary.LittleEndian.Uint16(text[2:])])
		seen |= a | b
		binary.BigEndian.PutUint32(dst, a<<20|b<<8)
		dst = dst[3:]
	}
	return seen>>12 == 0 && decodeLast(t, dst, last)
}

// decodeWords decodes eight characters at a time and returns what is left, and
// more than twelve bits where one was none of the alphabet. It stands alone so
// that all it needs stays in registers.
func decodeWords(t *[1 << 16]uint16, dst, text []byte) (restDst, restText []byte, seen uint32) {
	for len(text) >= 8 && len(dst) >= 8 {
		a, b := uint32(t[binary.LittleEndian.Uint16(text)]), uint32(t[binary.LittleEndian.Uint16(text[2:])])
		c, d := uint32(t[binary.LittleEndian.Uint16(text[4:])]), uint32(t[binary.LittleEndian.Uint16(text[6:])])
		seen |= a | b | c | d
		binary.BigEndian.PutUint64(dst, uint64(a<<12|b)<<40|uint64(c<<12|d)<<16)
		text, dst = text[8:], dst[6:]
	}
	return dst, text, seen
}

// decodeLast decodes the four characters that may be padded.
func decodeLast(t *[1 << 16]uint16, dst, text []byte) bool {
	first, second := t[binary.LittleEndian.Uint16(text)], uint16(0)
	bytes := 3
	switch {
	case text[3] != '=':
		second = t[binary.LittleEndian.Uint16(text[2:])]
	case text[2] != '=':
		bytes = 2
		second = t[uint16(text[2])|'A'<<8]
	default:
		bytes = 1
	}
	if first == noBits || second == noBits {
		return false
	}
	v := uint32(first)<<12 | uint32(second)
	for i := range bytes {
		dst[i] = byte(v >> 16)
		v = v << 8 & 0xffffff
	}
	return v == 0
}
