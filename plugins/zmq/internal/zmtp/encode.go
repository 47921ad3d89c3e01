// SPDX-License-Identifier: Apache-2.0

package zmtp

import "encoding/binary"

// The flags of a frame (RFC 23, "Framing"); the other bits are zero.
const (
	flagMore    = 1 << 0
	flagLong    = 1 << 1
	flagCommand = 1 << 2
	flagsKnown  = flagMore | flagLong | flagCommand
)

// A frame begins with flags and a length of one or of eight bytes.
const (
	shortHead = 2
	longHead  = 9
	maxShort  = 255
)

// HeadSize returns how many bytes AppendHead appends.
func HeadSize(size int) int {
	if size > maxShort {
		return longHead
	}
	return shortHead
}

// AppendHead appends the head of a message frame of size bytes, which more
// frames of its message follow or none.
func AppendHead(dst []byte, size int, more bool) []byte {
	if more {
		return appendHead(dst, flagMore, size)
	}
	return appendHead(dst, 0, size)
}

func appendHead(dst []byte, flags byte, size int) []byte {
	if size <= maxShort {
		return append(dst, flags, byte(size))
	}
	return binary.BigEndian.AppendUint64(append(dst, flags|flagLong), uint64(size))
}

// AppendFrame appends a whole message frame.
func AppendFrame(dst, body []byte, more bool) []byte {
	return append(AppendHead(dst, len(body), more), body...)
}
