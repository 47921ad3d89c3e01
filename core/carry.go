// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Carries reports whether a destination whose headers travel as m can carry x.
// It answers for what all transports of the mode have in common; a transport
// may carry more.
func (m HeaderMode) Carries(x Header) bool {
	switch m {
	case HeadersEnveloped:
		return true
	case HeadersNativeBytes:
		return carriesName(x.Name)
	case HeadersNativeText:
		return carriesName(x.Name) && carriesText(x.Value)
	default:
		return false
	}
}

// carriesName reports whether name can stand on a line before a colon.
func carriesName(name string) bool {
	return name != "" && !strings.Contains(name, ":") && plainText(name)
}

// carriesText reports whether v can stand on a line after a colon.
func carriesText(v []byte) bool { return plainText(string(v)) }

// plainText reports whether s is UTF-8 on one line without blanks at its ends
// and without control characters.
func plainText(s string) bool {
	if !utf8.ValidString(s) || strings.TrimSpace(s) != s {
		return false
	}
	return strings.IndexFunc(s, unicode.IsControl) < 0
}

// fit returns h as to can carry it: headers that it cannot carry, for their
// name, their value, their repetition or their number, are encoded together.
func (h Headers) fit(to Publishing) Headers {
	if to.Headers == HeadersNone {
		return nil
	}
	out := make(Headers, 0, len(h)+1)
	var encoded Headers
	for i, x := range h {
		if to.Headers.Carries(x) && (to.Repeats || !h[i+1:].Has(x.Name)) {
			out = append(out, x)
		} else {
			encoded = append(encoded, x)
		}
	}
	// Too many: the message's own go first, from the end.
	for to.MaxHeaders > 0 && len(out) > 0 {
		n := len(out)
		if len(encoded) > 0 && !out.Has(EncodedHeader) {
			n++
		}
		if n <= to.MaxHeaders {
			break
		}
		i := leastNeeded(out)
		encoded = append(encoded, out[i])
		out = append(out[:i], out[i+1:]...)
	}
	if len(encoded) == 0 {
		return out
	}
	// What an earlier hop encoded stays: it is the same kind of thing.
	if old, ok := out.Get(EncodedHeader); ok {
		if before, err := DecodeHeaders(string(old)); err == nil {
			encoded = append(before, encoded...)
		}
		out = out.Without(EncodedHeader)
	}
	return append(out, Header{Name: EncodedHeader, Value: []byte(encoded.Encode())})
}

// leastNeeded returns the index of the header that is encoded first where there
// are too many: the last of the message's own, then of the runtime's, the count
// and what is encoded already at the very end.
func leastNeeded(h Headers) int {
	at, rank := 0, -1
	for i, x := range h {
		r := 3
		switch {
		case sameName(x.Name, EncodedHeader):
			r = 0
		case sameName(x.Name, CountHeader):
			r = 1
		case ownName(x.Name):
			r = 2
		}
		if r >= rank {
			at, rank = i, r
		}
	}
	return at
}

// lengthBytes is the size of a length before a name or a value.
const lengthBytes = 4

// Encode returns the headers as the text that EncodedHeader carries: padded
// standard base64 of name and value in turn, each after its length as four
// bytes, most significant first.
func (h Headers) Encode() string {
	block := make([]byte, 0, h.Size()+2*lengthBytes*len(h))
	for _, x := range h {
		block = binary.BigEndian.AppendUint32(block, uint32(len(x.Name)))
		block = append(block, x.Name...)
		block = binary.BigEndian.AppendUint32(block, uint32(len(x.Value)))
		block = append(block, x.Value...)
	}
	return base64.StdEncoding.EncodeToString(block)
}

// A HeadersError says why a text is no encoded list of headers.
type HeadersError struct {
	At     int // byte of the decoded block
	Reason string
}

// Error names the place and the reason.
func (e *HeadersError) Error() string {
	return fmt.Sprintf("decode headers: byte %d: %s", e.At, e.Reason)
}

// DecodeHeaders reads what Encode writes. The error is a *HeadersError.
func DecodeHeaders(text string) (Headers, error) {
	block, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, &HeadersError{Reason: "it is not standard base64 with padding"}
	}
	var h Headers
	at := 0
	next := func() ([]byte, bool) {
		if len(block)-at < lengthBytes {
			return nil, false
		}
		n := uint64(binary.BigEndian.Uint32(block[at:]))
		if n > uint64(len(block)-at-lengthBytes) {
			return nil, false
		}
		at += lengthBytes
		b := block[at : at+int(n) : at+int(n)]
		at += int(n)
		return b, true
	}
	for at < len(block) {
		name, ok := next()
		if !ok {
			return nil, &HeadersError{At: at, Reason: "a name is cut off"}
		}
		value, ok := next()
		if !ok {
			return nil, &HeadersError{At: at, Reason: "a value is cut off"}
		}
		h = append(h, Header{Name: string(name), Value: value})
	}
	return h, nil
}
