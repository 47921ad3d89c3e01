// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strconv"
	"strings"
)

// Header is one header as its transport carried it: the name with its case,
// the value as bytes.
type Header struct {
	Name  string
	Value []byte
}

// String returns the header as name="value", the value quoted as Go does.
func (h Header) String() string { return h.Name + "=" + strconv.Quote(string(h.Value)) }

// Headers is a list of headers in the order received, repeats included (D25).
// Lookups ignore the case of ASCII letters, and of several headers with one
// name the last one counts.
type Headers []Header

// String returns the headers in order, as [a="1" b="2"]. Nothing is left out.
func (h Headers) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range h {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(h[i].String())
	}
	b.WriteByte(']')
	return b.String()
}

// Get returns the value of the last header called name, and whether there is
// one. The value is the list's own, not a copy.
func (h Headers) Get(name string) ([]byte, bool) {
	for i := len(h) - 1; i >= 0; i-- {
		if sameName(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return nil, false
}

// Value returns the value of the last header called name as text, "" where
// there is none.
func (h Headers) Value(name string) string {
	v, _ := h.Get(name)
	return string(v)
}

// Has reports whether there is a header called name.
func (h Headers) Has(name string) bool {
	_, ok := h.Get(name)
	return ok
}

// Without returns the headers that have none of the names: h itself where
// nothing is to be left out, else a new list.
func (h Headers) Without(names ...string) Headers {
	n := 0
	for i := range h {
		if anyName(h[i].Name, names) {
			n++
		}
	}
	if n == 0 {
		return h
	}
	kept := make(Headers, 0, len(h)-n)
	for _, x := range h {
		if !anyName(x.Name, names) {
			kept = append(kept, x)
		}
	}
	return kept
}

// Size returns the bytes of all names and values.
func (h Headers) Size() int {
	n := 0
	for i := range h {
		n += len(h[i].Name) + len(h[i].Value)
	}
	return n
}

// Clone returns a copy that shares no memory with h.
func (h Headers) Clone() Headers {
	m := Message{Headers: h}.Clone()
	return m.Headers
}

// Message is what a transport delivers and takes: a name (topic, key, queue),
// headers and a payload.
type Message struct {
	Name    string
	Headers Headers
	Payload []byte
}

// Size returns the bytes of payload and headers, what credit and size limits
// count.
func (m Message) Size() int { return len(m.Payload) + m.Headers.Size() }

// Clone returns a copy that shares no memory with m. A nil payload and nil
// headers stay nil.
func (m Message) Clone() Message {
	c := Message{Name: strings.Clone(m.Name)}
	if m.Payload == nil && m.Headers == nil {
		return c
	}
	// One block for all bytes, one text for all names.
	size := len(m.Payload)
	names := 0
	for i := range m.Headers {
		size += len(m.Headers[i].Value)
		names += len(m.Headers[i].Name)
	}
	block := make([]byte, 0, size)
	take := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		at := len(block)
		block = append(block, b...)
		return block[at:len(block):len(block)]
	}
	c.Payload = take(m.Payload)
	if m.Headers == nil {
		return c
	}
	var text strings.Builder
	text.Grow(names)
	for i := range m.Headers {
		text.WriteString(m.Headers[i].Name)
	}
	all := text.String()
	c.Headers = make(Headers, len(m.Headers))
	for i := range m.Headers {
		n := len(m.Headers[i].Name)
		c.Headers[i] = Header{Name: all[:n], Value: take(m.Headers[i].Value)}
		all = all[n:]
	}
	return c
}

// Destination is a place to publish to: a name on an attached endpoint.
type Destination struct {
	Endpoint string
	Name     string
}

// String returns "name@endpoint", or the name alone without an endpoint.
func (d Destination) String() string {
	if d.Endpoint == "" {
		return d.Name
	}
	return d.Name + "@" + d.Endpoint
}

// IsZero reports whether d names no destination.
func (d Destination) IsZero() bool { return d == Destination{} }

// sameName reports whether two header names are equal but for the case of
// ASCII letters.
func sameName(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if x, y := a[i], b[i]; x != y && lower(x) != lower(y) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func anyName(name string, names []string) bool {
	for _, n := range names {
		if sameName(name, n) {
			return true
		}
	}
	return false
}
