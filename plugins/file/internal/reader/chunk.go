// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// entry is a record of a chunk, without pointers.
type entry struct {
	sequence uint64
	time     int64
	at, end  uint32 // in the file, from the chunk's place
	from     uint32 // of the payload in buf, or its index in cuts with isCut set
	size     uint32 // of the payload
	key      uint32 // index in keys
	next     uint32 // index of the next entry of the key; 0 = none
}

// isCut marks a payload that beacons cut: it was put together elsewhere. No
// chunk is as large as this.
const isCut = 1 << 31

// entrySize is what an entry takes, for the cache's account.
const entrySize = 40

// flaw is a problem and where it was met.
type flaw struct {
	at, end uint32 // from the chunk's place; end 0 = it is all there is of the chunk
	problem *Problem
}

// chunk is a piece of a segment, read and parsed once for all cursors. Nothing
// that is read changes once it is made.
type chunk struct {
	src       *source
	off, next int64 // where it begins and what follows begins, both boundaries
	entries   []entry
	buf       []byte
	held      int      // bytes of memory that buf keeps
	cuts      [][]byte // payloads that beacons cut
	keys      []string
	firsts    []uint32          // index of each key's first entry
	table     map[string]uint32 // index of a key, where there are many
	flaws     []flaw

	memory []byte       // of buf, where it can be used again
	holds  atomic.Int32 // batches with payloads of it that are not spent
	shared bool         // payloads of it are elsewhere
	passed bool         // by the one cursor there was; nobody finds it any more

	newer, older *chunk // in the cache's order of use, which owns them

	// one is where the slices lie that have one element.
	one struct {
		entries [1]entry
		keys    [1]string
		firsts  [1]uint32
	}
}

// fewKeys is how many keys are searched one by one.
const fewKeys = 8

// perChunk is what a chunk counts in the cache besides its bytes: so much that
// the many small ones of a tail do not fill it.
const perChunk = 2 << 10

// bytes is what the cache accounts for the chunk.
func (c *chunk) bytes() int64 {
	const perKey = 64
	n := perChunk + c.held + len(c.entries)*entrySize + len(c.keys)*perKey
	for _, p := range c.cuts {
		n += len(p)
	}
	return int64(n)
}

// key returns the index of a key.
func (c *chunk) key(key string) (uint32, bool) {
	if c.table != nil {
		k, ok := c.table[key]
		return k, ok
	}
	k := slices.Index(c.keys, key)
	return uint32(k), k >= 0
}

// search returns the index of the first entry at or behind a place given from
// the chunk's.
func (c *chunk) search(at uint32) int {
	i, _ := slices.BinarySearchFunc(c.entries, at, func(e entry, at uint32) int { return cmp.Compare(e.at, at) })
	return i
}

// payload returns an entry's payload. It cannot be appended to in place.
func (c *chunk) payload(e *entry) []byte {
	if e.from&isCut != 0 {
		return c.cuts[e.from&^isCut]
	}
	return c.buf[e.from : e.from+e.size : e.from+e.size]
}

// record returns an entry as cursors give it out.
func (c *chunk) record(e *entry) Record {
	return Record{
		Key: c.keys[e.key], Sequence: e.sequence, Time: e.time, Payload: c.payload(e),
		At: Place{Created: c.src.header.Created, Offset: c.off + int64(e.at)},
	}
}
