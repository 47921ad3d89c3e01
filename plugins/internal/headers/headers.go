// SPDX-License-Identifier: Apache-2.0

// Package headers has memory for lists of headers that is used again and again.
package headers

import (
	"unsafe"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// The headers that one piece of memory has at most, and at first. A longer
// list stands alone.
const (
	most  = 256 << 10 / int(unsafe.Sizeof(core.Header{}))
	first = 64
)

// Memory is what lists of headers are taken from. The zero value has none yet; it
// grows to what was needed, at most to 256 KiB.
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

// Lists takes lists of headers. The zero value is ready; one goroutine uses it at a
// time.
type Lists struct {
	memory *Memory
	free   []core.Header
}

// Use makes lists be taken from m from now on, from its beginning: nothing that
// was taken from it may be in use any more. Without memory, nil, each list has its
// own.
func (l *Lists) Use(m *Memory) {
	l.memory, l.free = m, nil
	if m != nil {
		l.free = m.headers
	}
}

// Room returns an empty list with room for n headers, until the next.
func (l *Lists) Room(n int) core.Headers {
	switch {
	case n <= len(l.free):
	case n > most/4:
		return make(core.Headers, 0, n)
	case l.memory == nil:
		return make(core.Headers, 0, n)
	default:
		l.free = make([]core.Header, min(max(2*len(l.memory.headers), n, first), most))
		l.memory.headers = l.free
	}
	return l.free[:0]
}

// Take makes a list of Room, with room for one more, the caller's.
func (l *Lists) Take(h core.Headers) core.Headers {
	n := len(h) + 1
	if len(l.free) == 0 || unsafe.SliceData(h) != unsafe.SliceData(l.free) {
		return h
	}
	l.free = l.free[n:]
	return h[: n-1 : n]
}
