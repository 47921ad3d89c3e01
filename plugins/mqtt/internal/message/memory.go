// SPDX-License-Identifier: Apache-2.0

package message

import (
	"unsafe"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// Memory is what a Decoder takes lists of headers from. The zero value has none
// yet; it grows to what was needed, at most to 256 KiB.
type Memory struct {
	headers []core.Header
}

// Spent says that no list of the memory is in use any more.
func (m *Memory) Spent() {
	if !poison.On {
		return
	}
	for i := range m.headers {
		m.headers[i] = core.Header{Name: "spent", Value: []byte{poison.Byte}}
	}
}

// The headers that one piece of memory has at most, and at first. A longer
// list stands alone.
const (
	mostHeaders  = 256 << 10 / int(unsafe.Sizeof(core.Header{}))
	firstHeaders = 64
)

// list returns an empty list with room for n headers.
func (d *Decoder) list(n int) core.Headers {
	switch {
	case n <= len(d.free):
	case n > mostHeaders/4:
		return make(core.Headers, 0, n)
	case d.memory == nil:
		return make(core.Headers, 0, n)
	default:
		d.free = make([]core.Header, min(max(2*len(d.memory.headers), n, firstHeaders), mostHeaders))
		d.memory.headers = d.free
	}
	return d.free[:0]
}

// take makes a list of d.list with room for one more the caller's.
func (d *Decoder) take(h core.Headers) core.Headers {
	n := len(h) + 1
	if len(d.free) == 0 || unsafe.SliceData(h) != unsafe.SliceData(d.free) {
		return h
	}
	d.free = d.free[n:]
	return h[: n-1 : n]
}
