// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// pack writes a copy without options into one text: name, carry, id against
// doubles, the number of headers and each of them, all with their lengths, and
// then the payload.
func pack(o *frame.Outgoing) string {
	m := &o.Message
	n := packedSize(len(m.Name)) + packedSize(len(o.Carry)) + packedSize(len(o.DedupID)) +
		uvarintSize(len(m.Headers)) + len(m.Payload)
	for i := range m.Headers {
		n += packedSize(len(m.Headers[i].Name)) + packedSize(len(m.Headers[i].Value))
	}
	var b strings.Builder
	b.Grow(n)
	packString(&b, m.Name)
	packBytes(&b, o.Carry)
	packString(&b, o.DedupID)
	packLength(&b, len(m.Headers))
	for i := range m.Headers {
		packString(&b, m.Headers[i].Name)
		packBytes(&b, m.Headers[i].Value)
	}
	b.Write(m.Payload)
	return b.String()
}

// unpack reads what pack wrote. What it returns may be changed. Bytes that are
// empty come back as nil.
func unpack(text string) frame.Outgoing {
	r := packed{text: text, bytes: []byte(text)}
	var o frame.Outgoing
	o.Message.Name = r.string()
	o.Carry = r.value()
	o.DedupID = r.string()
	if n := r.length(); n > 0 {
		o.Message.Headers = make(core.Headers, n, n+1) // a row's id may be added
		for i := range o.Message.Headers {
			o.Message.Headers[i] = core.Header{Name: r.string(), Value: r.value()}
		}
	}
	o.Message.Payload = r.take(len(r.bytes))
	return o
}

// packed is what is left to be read of a packed copy: texts share its memory,
// bytes that of their copy.
type packed struct {
	text  string
	bytes []byte
}

func (r *packed) length() int {
	n, size := binary.Uvarint(r.bytes)
	r.take(size)
	return int(n)
}

func (r *packed) string() string {
	n := r.length()
	text := r.text[:n]
	r.take(n)
	return text
}

func (r *packed) value() []byte { return r.take(r.length()) }

// take takes n bytes, nil where there are none.
func (r *packed) take(n int) []byte {
	b := r.bytes[:n:n]
	r.text, r.bytes = r.text[n:], r.bytes[n:]
	if n == 0 {
		return nil
	}
	return b
}

func packLength(b *strings.Builder, n int) {
	var buf [binary.MaxVarintLen64]byte
	b.Write(binary.AppendUvarint(buf[:0], uint64(n)))
}

func packString(b *strings.Builder, s string) {
	packLength(b, len(s))
	b.WriteString(s)
}

func packBytes(b *strings.Builder, v []byte) {
	packLength(b, len(v))
	b.Write(v)
}

// packedSize is the size of n bytes with their length.
func packedSize(n int) int { return uvarintSize(n) + n }

// uvarintSize is the size of a length.
func uvarintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }
