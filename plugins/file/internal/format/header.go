// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

const (
	// HeaderSize is the length of a file's header. The first record follows it.
	HeaderSize = 128
	// MaxName is the longest file name a header holds.
	MaxName = HeaderSize - len(magic) - 1 - 1 - 8 - 4 - 1
	// IntervalUnit is what a beacon interval is a multiple of.
	IntervalUnit = 1024

	magic   = "Ss"
	version = 1
)

// Header begins a file.
type Header struct {
	Name     string // base name at the time of creation
	Created  int64  // ms since the epoch
	Interval uint32 // of beacons, a positive multiple of IntervalUnit
}

// HeaderError says why bytes are not the header of a stream file.
type HeaderError struct {
	Offset int // of the field
	Reason string
}

// Error names the offset and the reason.
func (e *HeaderError) Error() string {
	return fmt.Sprintf("no stream file: header, offset %d: %s", e.Offset, e.Reason)
}

// Append appends the header. A name longer than MaxName bytes is cut to that,
// or to up to three bytes less where that would split a character: nothing
// depends on the name.
func (h Header) Append(dst []byte) []byte {
	name := h.Name
	if len(name) > MaxName {
		cut := MaxName
		for cut > MaxName-utf8.UTFMax+1 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	begin := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, version, byte(len(name)))
	dst = append(dst, name...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Created))
	dst = binary.BigEndian.AppendUint32(dst, h.Interval)
	dst = append(dst, make([]byte, HeaderSize-1-(len(dst)-begin))...)
	return append(dst, closing)
}

// ParseHeader takes the header at the beginning of b apart. What pads it is not
// looked at. The error is a *HeaderError.
func ParseHeader(b []byte) (Header, error) {
	refuse := func(at int, format string, args ...any) (Header, error) {
		return Header{}, &HeaderError{Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	if n := min(len(b), len(magic)); string(b[:n]) != magic[:n] {
		return refuse(0, "it begins with %q, not with %q", b[:n], magic)
	}
	if len(b) < HeaderSize {
		return refuse(len(b), "it ends there, a header has %d bytes", HeaderSize)
	}
	at := len(magic)
	if b[at] != version {
		return refuse(at, "version %d, only %d is known", b[at], version)
	}
	at++
	name := int(b[at])
	if name > MaxName {
		return refuse(at, "a name of %d bytes, at most %d fit", name, MaxName)
	}
	at++
	h := Header{Name: string(b[at : at+name])}
	at += name
	h.Created = int64(binary.BigEndian.Uint64(b[at:]))
	at += 8
	h.Interval = binary.BigEndian.Uint32(b[at:])
	if h.Interval == 0 || h.Interval%IntervalUnit != 0 {
		return refuse(at, "beacon interval %d is no positive multiple of %d", h.Interval, IntervalUnit)
	}
	if end := b[HeaderSize-1]; end != closing {
		return refuse(HeaderSize-1, "it closes with %02x, not with %02x", end, closing)
	}
	return h, nil
}
