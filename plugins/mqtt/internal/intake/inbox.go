// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/longshore-go/longshore/plugins/mqtt/internal/packet"

// item is a message that waits for a receiver.
type item struct {
	publish  packet.Publish
	memory   *memory // that it lies in
	handle   *handle // nil = nobody can settle it
	loose    bool    // it counts as such
	excess   bool    // it came beyond the Receive Maximum
	deadline int64   // in milliseconds since 1970, when it expires; 0 = never
	link     uint64  // that it came on
	size     int     // about what it takes
}

// sizeOf is what counts for the bounds of queues and batches: all that is copied
// or sent on of a packet.
func sizeOf(p *packet.Publish) int {
	return len(p.Topic) + len(p.Properties) + len(p.Payload)
}

// inbox is a queue of items in the order in which they came. It is guarded by the
// intake's lock.
type inbox struct {
	ring  []item // of a power of two
	head  int
	n     int
	bytes int64 // of its items
	loose int   // of them
	fresh int   // items at its end whose memory is not taken over yet
	owner *Receiver
	chunk *memory // that is being filled with copies
}

// The least ring, and the most that an inbox keeps while it is empty.
const (
	leastRing = 16
	idleRing  = 1024
)

func (b *inbox) at(i int) *item { return &b.ring[(b.head+i)&(len(b.ring)-1)] }

// push puts an item behind the others.
func (b *inbox) push(it item) {
	*b.add() = it
	b.bytes += int64(it.size)
	if it.loose {
		b.loose++
	}
}

// add makes room for one more item and returns it.
func (b *inbox) add() *item {
	if b.n == len(b.ring) {
		grown := make([]item, max(2*b.n, leastRing))
		k := copy(grown, b.ring[b.head:])
		copy(grown[k:], b.ring[:b.head])
		b.ring, b.head = grown, 0
	}
	b.n++
	return b.at(b.n - 1)
}

// pop takes the first item.
func (b *inbox) pop() item {
	at := b.at(0)
	it := *at
	*at = item{}
	b.head = (b.head + 1) & (len(b.ring) - 1)
	b.n--
	b.bytes -= int64(it.size)
	if it.loose {
		b.loose--
	}
	if b.n == 0 {
		b.idle()
	}
	return it
}

// idle gives memory back that a quiet inbox does not need.
func (b *inbox) idle() {
	if len(b.ring) > idleRing {
		b.ring, b.head = nil, 0
	}
	if b.chunk != nil && cap(b.chunk.copy) > smallChunk {
		b.close()
	}
}

// remove takes item i, counted from the first.
func (b *inbox) remove(i int) item {
	it := *b.at(i)
	for ; i > 0; i-- {
		*b.at(i) = *b.at(i - 1)
	}
	*b.at(0) = it
	return b.pop()
}

// filter keeps the items that keep says, which may change them.
func (b *inbox) filter(keep func(*item) bool) {
	for n := b.n; n > 0; n-- {
		it := b.pop()
		if keep(&it) {
			b.push(it)
		}
	}
}

// close gives the memory back that copies would go to.
func (b *inbox) close() {
	if b.chunk != nil {
		b.chunk.drop(1)
		b.chunk = nil
	}
}

// uncount says that an item does not wait any more, or as another kind. in.mu is
// held.
func (in *Intake) uncount(it *item) {
	if it.loose {
		in.loose.remove(it.size)
	}
	if it.excess {
		in.excess -= int64(it.size)
	}
	it.loose, it.excess = false, false
}

// drop lets go of an item that is not handed out. in.mu is held.
func (in *Intake) drop(it item) {
	in.uncount(&it)
	if it.memory != nil { // nil = it came with the read in hand
		it.memory.drop(1)
	}
}
