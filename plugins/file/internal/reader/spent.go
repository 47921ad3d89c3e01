// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"slices"

	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// A file that one cursor alone reads is not worth keeping in the cache, and what
// nobody kept of it is memory to read on into: it is near, and needs neither be
// cleared nor collected.

// mostSpare is how many chunks' memory waits to be used again.
const mostSpare = 4

// Loan is the payloads of a batch in the hands of others. The zero value is
// none.
type Loan struct {
	r      *Reader
	chunks []*chunk
}

// Lend leaves the payloads of the last batch to l, whose last ones are spent,
// instead of keeping them for good.
func (c *Cursor) Lend(l *Loan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.r = c.r
	l.chunks, c.given = append(l.chunks[:0], c.given...), c.given[:0]
}

// Spent says that nothing of the payloads is kept any more. It may be called
// beside anything that the cursor does, and behind its end.
func (l *Loan) Spent() {
	if len(l.chunks) == 0 {
		return
	}
	k := &l.r.cache
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ch := range l.chunks {
		ch.holds.Add(-1)
		k.reuse(ch)
	}
	clear(l.chunks)
	l.chunks = l.chunks[:0]
}

// Spent says that nothing of the payloads of the last batch is kept.
func (c *Cursor) Spent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.given {
		ch.holds.Add(-1)
	}
	clear(c.given)
	c.given = c.given[:0]
}

// forget lets go of the last batch and of the chunks that were passed with it.
func (c *Cursor) forget() {
	clear(c.given) // not spent: their memory is kept for good
	c.given = c.given[:0]
	for _, ch := range c.passed {
		c.r.passed(ch)
	}
	clear(c.passed)
	c.passed = c.passed[:0]
}

// passed lets go of a chunk that a cursor has passed, if there is no other one.
// Cursors are counted before they take payloads out of the cache, and until they
// are closed.
func (r *Reader) passed(ch *chunk) {
	k := &r.cache
	k.mu.Lock()
	defer k.mu.Unlock()
	i, ok := slices.BinarySearchFunc(ch.src.chunks, ch.off, compareChunk)
	if !ok || ch.src.chunks[i] != ch || r.reading.Load() > 1 {
		return
	}
	k.remove(ch)
	ch.passed = true
	k.reuse(ch)
}

// reuse keeps the memory of a chunk that nobody has any more; k.mu is held.
func (k *cache) reuse(ch *chunk) {
	if !ch.passed || ch.memory == nil || ch.shared || ch.holds.Load() > 0 {
		return
	}
	poison.Bytes(ch.memory)
	if len(k.spare) < mostSpare {
		k.spare = append(k.spare, ch.memory)
	}
	ch.memory, ch.buf = nil, nil
}

// memory returns n bytes to read into, which nobody else has.
func (r *Reader) memory(n int) []byte {
	if n == r.chunk && n > slabMost {
		k := &r.cache
		k.mu.Lock()
		defer k.mu.Unlock()
		if last := len(k.spare) - 1; last >= 0 {
			b := k.spare[last]
			k.spare[last] = nil
			k.spare = k.spare[:last]
			return b
		}
	}
	return r.slab.take(n)
}
