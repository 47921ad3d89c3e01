// SPDX-License-Identifier: Apache-2.0

package intake

import "time"

// The bounds of what is remembered of batches of which nothing is in hand: a batch
// that some of is acked comes again as a whole where the broker keeps no acks of
// single messages.
const (
	keptBatches = 4096
	keptFor     = 10 * time.Minute
)

// batch is an entry that a producer has put several messages into. Its messages are
// settled one by one; a nack and the count of redeliveries are of the whole entry.
type batch struct {
	place place
	size  int32
	done  []uint64  // bits of the messages that are settled
	left  int       // messages that are not
	open  int       // deliveries in the lane's table
	since time.Time // it was last in hand
	kept  bool      // it stands in lane.kept
}

func newBatch(at place, size int32) *batch {
	return &batch{place: at, size: size, done: make([]uint64, (size+63)/64), left: int(size)}
}

func (b *batch) has(i int32) bool { return b.done[i/64]&(1<<(i%64)) != 0 }

func (b *batch) settle(i int32) {
	if !b.has(i) {
		b.done[i/64] |= 1 << (i % 64)
		b.left--
	}
}

// join finds or makes the batch of a message. in.mu is held.
func (l *lane) join(at position, size int32) *batch {
	if at.batch < 0 {
		return nil
	}
	b := l.batches[at.place]
	if b == nil || at.batch >= b.size {
		if l.batches == nil {
			l.batches = make(map[place]*batch)
		}
		b = newBatch(at.place, size)
		l.batches[at.place] = b
	}
	return b
}

// leave takes a delivery of a batch out of account. The batch is forgotten once all of
// it is acked; else it is remembered for when it comes again. in.mu is held.
func (l *lane) leave(b *batch, now time.Time) {
	if b.open--; b.open > 0 || l.batches[b.place] != b {
		return
	}
	if b.left == 0 && !l.wary(now) {
		delete(l.batches, b.place)
		return
	}
	b.since = now
	if !b.kept {
		b.kept = true
		l.kept = append(l.kept, b)
	}
	for len(l.kept) > 0 && (len(l.kept) > keptBatches || now.Sub(l.kept[0].since) > keptFor) {
		old := l.kept[0]
		old.kept = false
		l.kept[0] = nil
		l.kept = l.kept[1:]
		if old.open == 0 && l.batches[old.place] == old {
			delete(l.batches, old.place)
		}
	}
}
