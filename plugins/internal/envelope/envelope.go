// SPDX-License-Identifier: Apache-2.0

// Package envelope carries headers inside a payload, for transports that have
// no place for them (stream files and pipes). A payload that needs none is left
// as it is, so that other tools can read it.
//
// There are two forms, both text: "rs1:" and "rs2:", each followed by standard
// base64 with padding of a block length (32 bits, big endian), the header block
// and the payload. The block of rs1 is lines "name: value"; the block of rs2,
// for headers that would not survive a line, is lengths (32 bits, big endian)
// and bytes, name before value.
package envelope

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// The marks, of one length.
const (
	markLines  = "rs1:"
	markBlocks = "rs2:"
	markLen    = len(markLines)
)

// MaxHeaders is how many headers one envelope may hold. A header takes two
// bytes and more in an envelope and forty and more in memory; without a limit a
// large payload made of headers alone would take all of it.
const MaxHeaders = 1 << 16

// blockLen is the size of a length within an envelope.
const blockLen = 4

// Needed reports whether a record cannot carry the message as it is: it has
// headers, or its payload begins like an envelope.
func Needed(headers core.Headers, payload []byte) bool {
	return len(headers) > 0 || marked(payload)
}

// NeededInLine reports whether a line of text cannot carry the message as it
// is: as Needed, and where the payload holds a line break, has blanks at an
// end, or is not UTF-8.
func NeededInLine(headers core.Headers, payload []byte) bool {
	return Needed(headers, payload) || bytes.IndexByte(payload, '\n') >= 0 ||
		blankEnds(payload) || !utf8.Valid(payload)
}

// Len is how many bytes Append appends.
func Len(headers core.Headers, payload []byte) int {
	return markLen + textLen(plainLen(headers, payload, fitLines(headers)))
}

// plainLen is how many bytes an envelope holds.
func plainLen(headers core.Headers, payload []byte, inLines bool) int {
	n := blockLen + len(payload)
	for i := range headers {
		n += len(headers[i].Name) + len(headers[i].Value)
		if inLines {
			n += len(": \n")
		} else {
			n += 2 * blockLen
		}
	}
	return n
}

// Append appends the envelope of a message to dst.
func Append(dst []byte, headers core.Headers, payload []byte) []byte {
	inLines := fitLines(headers)
	n := plainLen(headers, payload, inLines)
	mark := markBlocks
	if inLines {
		mark = markLines
	}
	dst = slices.Grow(dst, markLen+textLen(n))
	dst = append(dst, mark...)
	text := dst[len(dst) : len(dst)+textLen(n)]
	plain := text[len(text)-n:] // its text grows over it from the left
	b := binary.BigEndian.AppendUint32(plain[:0], uint32(n-blockLen-len(payload)))
	for i := range headers {
		if inLines {
			b = append(b, headers[i].Name...)
			b = append(b, ": "...)
			b = append(b, headers[i].Value...)
			b = append(b, '\n')
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(len(headers[i].Name)))
			b = append(b, headers[i].Name...)
			b = binary.BigEndian.AppendUint32(b, uint32(len(headers[i].Value)))
			b = append(b, headers[i].Value...)
		}
	}
	copy(plain[len(b):], payload)
	encode(text, plain)
	return dst[:len(dst)+len(text)]
}

func marked(payload []byte) bool {
	return bytes.HasPrefix(payload, []byte(markLines)) || bytes.HasPrefix(payload, []byte(markBlocks))
}

// fitLines reports whether every header survives as a line "name: value".
func fitLines(headers core.Headers) bool {
	for i := range headers {
		name, value := headers[i].Name, headers[i].Value
		if name == "" || strings.IndexByte(name, ':') >= 0 || !fitsLine(name) || !fitsLine(value) {
			return false
		}
	}
	return true
}

// fitsLine reports whether text survives at the end of a line or before a colon.
func fitsLine[T string | []byte](text T) bool {
	if usual(text) {
		return true
	}
	b := []byte(text)
	return utf8.Valid(b) && bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 && !blankEnds(b)
}

// usual reports whether text is ASCII without control characters and has no
// blank at an end, as nearly all headers.
func usual[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf {
			return false
		}
	}
	return len(text) == 0 || text[0] != ' ' && text[len(text)-1] != ' '
}

// blankEnds reports whether b begins or ends with a blank, as Unicode knows
// them.
func blankEnds(b []byte) bool {
	first, _ := utf8.DecodeRune(b)
	last, _ := utf8.DecodeLastRune(b)
	return unicode.IsSpace(first) || unicode.IsSpace(last)
}
