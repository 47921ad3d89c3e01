// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// memory is what packets lie in: what one read has put into the reader's memory,
// or a chunk of copies. It goes back when no packet in it is used any more.
type memory struct {
	refs atomic.Int64
	loan packet.Loan
	copy []byte // of a chunk
	pool *sync.Pool
}

// The sizes of chunks: for quiet receivers, and for those that are behind.
const (
	smallChunk = 4 << 10
	largeChunk = 64 << 10
)

var (
	loans       = sync.Pool{New: func() any { return new(memory) }}
	smallChunks = sync.Pool{New: func() any { return &memory{copy: make([]byte, 0, smallChunk)} }}
	largeChunks = sync.Pool{New: func() any { return &memory{copy: make([]byte, 0, largeChunk)} }}
)

// take returns memory out of a pool, with one reference.
func take(pool *sync.Pool) *memory {
	m, _ := pool.Get().(*memory)
	m.pool = pool
	m.refs.Store(1)
	return m
}

// drop takes n references back.
func (m *memory) drop(n int) {
	if m.refs.Add(int64(-n)) > 0 {
		return
	}
	m.loan.Release()
	poison.Bytes(m.copy)
	m.copy = m.copy[:0]
	m.pool.Put(m)
}

const (
	// copyRead is up to how many bytes of packets in one read are copied: what they
	// lie in is larger, and would be kept for as long as one of them waits.
	copyRead = 4 << 10
	// copyShare is the part of a read that a receiver's packets make up at least
	// where they are not copied.
	copyShare = 4
	// copyBehind is how much waits for a receiver that is behind: its packets are
	// copied from there on, so that they do not keep the memory of others' packets.
	copyBehind = 1 << 20
	// copyMost is the most bytes of a packet that are copied: a larger one nearly
	// fills what it lies in.
	copyMost = largeChunk
)

// own makes an inbox own what was pushed to it out of one read of so many bytes:
// by copying it, or by references to the reader's memory.
func (b *inbox) own(read int, lent *lent) {
	fresh := 0
	for i := b.n - b.fresh; i < b.n; i++ {
		fresh += b.at(i).size
	}
	copies := read <= copyRead || fresh*copyShare < read || b.bytes > copyBehind
	for i := b.n - b.fresh; i < b.n; i++ {
		it := b.at(i)
		if copies && it.size <= copyMost {
			b.copy(it)
			continue
		}
		it.memory = lent.take()
	}
	b.fresh = 0
}

// copy copies a packet into the inbox's chunk.
func (b *inbox) copy(it *item) {
	c := b.chunk
	if c != nil && c.refs.Load() == 1 { // all that is in it was used
		poison.Bytes(c.copy)
		c.copy = c.copy[:0]
	}
	if c == nil || cap(c.copy)-len(c.copy) < it.size {
		b.close()
		pool := &smallChunks
		if it.size > smallChunk || b.bytes > 4*smallChunk {
			pool = &largeChunks
		}
		c = take(pool)
		b.chunk = c
	}
	c.refs.Add(1)
	it.memory = c
	p := &it.publish
	p.Topic, p.Properties, p.Payload = c.put(p.Topic), c.put(p.Properties), c.put(p.Payload)
}

// put returns a copy of p, which there is room for.
func (m *memory) put(p []byte) []byte {
	from := len(m.copy)
	m.copy = append(m.copy, p...)
	return m.copy[from:len(m.copy):len(m.copy)]
}

// lent is the memory of one read, which is lent only where somebody wants it.
type lent struct {
	reader *packet.Reader
	memory *memory
}

// take returns it with one more reference.
func (l *lent) take() *memory {
	if l.memory == nil {
		l.memory = take(&loans)
		l.reader.Lend(&l.memory.loan)
	}
	l.memory.refs.Add(1)
	return l.memory
}

// end gives it back where nobody wants it.
func (l *lent) end() {
	if l.memory == nil {
		l.reader.Spent()
		return
	}
	l.memory.drop(1)
}
