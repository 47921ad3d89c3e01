// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
)

// standing is what a look behind a place finds when there is no record to give
// out.
type standing int

const (
	// something: a chunk.
	something standing = iota
	// nothing stands there, or what is left of a mark that was written over.
	nothing
	// partial is the beginning of a record, or zeros.
	partial
	// damaged is something else, with no beacon behind it to go on at.
	damaged
	// marked is an end mark that is the last thing of the file.
	marked
	// changed is another file, or a shorter one.
	changed
)

// found is what stands at a place.
type found struct {
	standing standing
	chunk    *chunk
	gen      uint64   // what the look knew of at least
	final    bool     // it cannot become more
	off      int64    // of the look
	size     int64    // of the file then
	problem  *Problem // of what is partial or damaged
	change   *change
}

// flight is a chunk being read, for everybody who wants it.
type flight struct {
	done  chan struct{} // nil while nobody waits for it
	found found
	err   error
}

// cache keeps the chunks used last within a number of bytes, the very last one
// whatever its size.
type cache struct {
	limit int64

	mu    sync.Mutex
	used  int64
	spare [][]byte // memory to read into
	// newest and oldest end the order of use.
	newest, oldest *chunk
}

// anew is later than every generation: only a look that begins now will do.
const anew = math.MaxUint64

// at returns what stands at off as of the generation gen or later, reading it
// once for everybody who asks at the same time.
func (r *Reader) at(ctx context.Context, s *source, off int64, gen uint64) (found, error) {
	c := &r.cache
	c.mu.Lock()
	for {
		if ch := s.covering(off); ch != nil {
			c.touch(ch)
			c.mu.Unlock()
			return found{chunk: ch}, nil
		}
		if m := s.memo; m.standing != something && m.off == off && m.gen >= gen && (m.final || !s.sealed) {
			c.mu.Unlock()
			return m, nil
		}
		f := s.flights[off]
		if f == nil {
			break
		}
		if f.done == nil {
			f.done = make(chan struct{})
		}
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return found{}, ctx.Err()
		}
		if f.err != nil || f.found.chunk != nil || f.found.gen >= gen {
			return f.found, f.err
		}
		c.mu.Lock()
	}
	f := new(flight)
	s.flights[off] = f
	final, limit := s.sealed, s.following(off)
	c.mu.Unlock()
	if gen == anew {
		gen = r.watch.generation()
	}

	f.found, f.err = s.fill(off, limit)
	f.found.gen, f.found.final, f.found.off = gen, final, off

	c.mu.Lock()
	delete(s.flights, off)
	if f.err == nil {
		s.size = f.found.size
		if ch := f.found.chunk; ch != nil {
			c.enter(ch)
			if ch.next == f.found.size {
				s.memo = found{standing: nothing, gen: gen, final: final, off: ch.next, size: ch.next}
			}
		} else {
			s.memo = f.found
		}
	}
	if f.done != nil {
		close(f.done)
	}
	c.mu.Unlock()
	if f.found.chunk != nil && !final {
		r.watch.progress()
	}
	return f.found, f.err
}

// compareChunk orders a chunk against a place.
func compareChunk(c *chunk, off int64) int { return cmp.Compare(c.off, off) }

// covering returns the chunk in which off lies.
func (s *source) covering(off int64) *chunk {
	i, ok := slices.BinarySearchFunc(s.chunks, off, compareChunk)
	if ok {
		return s.chunks[i]
	}
	if i > 0 && off < s.chunks[i-1].next {
		return s.chunks[i-1]
	}
	return nil
}

// following returns where the next chunk behind off begins, which a new one is
// to meet; 0 = there is none.
func (s *source) following(off int64) int64 {
	i, _ := slices.BinarySearchFunc(s.chunks, off, compareChunk)
	if i < len(s.chunks) {
		return s.chunks[i].off
	}
	return 0
}

// enter takes a chunk in and lets those used longest ago go.
func (c *cache) enter(ch *chunk) {
	s := ch.src
	i, there := slices.BinarySearchFunc(s.chunks, ch.off, compareChunk)
	if there {
		c.remove(s.chunks[i])
	}
	s.chunks = slices.Insert(s.chunks, i, ch)
	c.used += ch.bytes()
	c.front(ch)
	for c.used > c.limit && c.oldest != ch {
		c.remove(c.oldest)
	}
}

// remove lets a chunk go.
func (c *cache) remove(ch *chunk) {
	s := ch.src
	switch i, ok := slices.BinarySearchFunc(s.chunks, ch.off, compareChunk); {
	case ok && i == 0:
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	case ok:
		s.chunks = slices.Delete(s.chunks, i, i+1)
	}
	c.used -= ch.bytes()
	c.unlink(ch)
}

// touch makes a chunk the one used last.
func (c *cache) touch(ch *chunk) {
	if c.newest != ch {
		c.unlink(ch)
		c.front(ch)
	}
}

func (c *cache) front(ch *chunk) {
	ch.older, ch.newer = c.newest, nil
	if c.newest != nil {
		c.newest.newer = ch
	} else {
		c.oldest = ch
	}
	c.newest = ch
}

func (c *cache) unlink(ch *chunk) {
	if ch.newer != nil {
		ch.newer.older = ch.older
	} else {
		c.newest = ch.older
	}
	if ch.older != nil {
		ch.older.newer = ch.newer
	} else {
		c.oldest = ch.newer
	}
	ch.newer, ch.older = nil, nil
}

// drop lets all chunks of a source go.
func (c *cache) drop(s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(s.chunks) > 0 {
		c.remove(s.chunks[len(s.chunks)-1])
	}
	s.memo = found{}
}
