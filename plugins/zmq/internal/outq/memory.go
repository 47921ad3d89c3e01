// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// chunkSize is the memory that messages are copied into, one write's worth.
const chunkSize = 64 << 10

// The sizes of shared messages whose memory is used again: from 1 KiB to 2 MiB,
// each doubling in eight steps, so that little of it is left over. Smaller ones
// have the least, larger ones are left to the garbage collector.
const (
	leastBits = 10
	mostBits  = 21
	stepBits  = 3
	classes   = (mostBits-leastBits)<<stepBits + 1
)

// shareLeast is the largest shared message that is copied into each queue:
// cheaper than a segment of its own.
const shareLeast = 2 << 10

// Memory is what encoded messages lie in. Its zero value is ready; it is given
// back to the garbage collector while it is not used.
type Memory struct {
	chunks sync.Pool // of *chunk
	shared [classes]sync.Pool
	held   atomic.Int64
}

// Held returns how many bytes shared messages hold that wait in queues: each
// once, or once for each queue where it is copied, and its place in each queue.
func (m *Memory) Held() int64 { return m.held.Load() }

// chunk holds messages one after the other. It is used again once all of them
// are done.
type chunk struct {
	buf  []byte
	held int // messages in it that wait
}

// chunk returns an empty chunk with room for size bytes at least.
func (m *Memory) chunk(size int) *chunk {
	if size > chunkSize {
		return &chunk{buf: make([]byte, 0, size)}
	}
	if c, ok := m.chunks.Get().(*chunk); ok {
		return c
	}
	return &chunk{buf: make([]byte, 0, chunkSize)}
}

// put takes back a chunk that holds nothing.
func (m *Memory) put(c *chunk) {
	if cap(c.buf) != chunkSize {
		return
	}
	poison.Bytes(c.buf[:cap(c.buf)])
	c.buf = c.buf[:0]
	m.chunks.Put(c)
}

// Shared is one encoded message for several queues. Its memory is used again
// when the last of them has written it.
type Shared struct {
	bytes  []byte
	memory *Memory
	refs   atomic.Int32
}

// Share returns a message of up to size bytes, which encode appends, with one
// reference: the caller's.
func (m *Memory) Share(size int, encode func(dst []byte) []byte) *Shared {
	s := m.room(size)
	s.bytes = encode(s.bytes[:0])
	s.refs.Store(1)
	m.held.Add(int64(cap(s.bytes)))
	return s
}

func (m *Memory) room(size int) *Shared {
	class, size := classOf(size)
	if class < 0 {
		return &Shared{memory: m, bytes: make([]byte, 0, size)}
	}
	if s, ok := m.shared[class].Get().(*Shared); ok {
		return s
	}
	return &Shared{memory: m, bytes: make([]byte, 0, size)}
}

// classOf returns the class that holds size bytes and how many it holds; -1 and
// size where there is none.
func classOf(size int) (class, holds int) {
	switch {
	case size <= 1<<leastBits:
		return 0, 1 << leastBits
	case size > 1<<mostBits:
		return -1, size
	}
	below := bits.Len(uint(size-1)) - 1 // size is over this power of two, and at most the next
	step := 1 << (below - stepBits)
	n := (size - 1<<below + step - 1) / step
	return (below-leastBits)<<stepBits + n, 1<<below + n*step
}

func (s *Shared) retain() { s.refs.Add(1) }

// Size returns the bytes of the message on the wire.
func (s *Shared) Size() int { return len(s.bytes) }

// Release gives one reference back. The caller of Share calls it once, after the
// last PushShared.
func (s *Shared) Release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	s.memory.held.Add(-int64(cap(s.bytes)))
	class, holds := classOf(cap(s.bytes))
	if class < 0 || holds != cap(s.bytes) {
		return
	}
	poison.Bytes(s.bytes[:cap(s.bytes)])
	s.memory.shared[class].Put(s)
}
