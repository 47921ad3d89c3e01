// SPDX-License-Identifier: Apache-2.0

package intake

import "time"

// The bounds of what is remembered of batches of which nothing is in hand: a batch
// that some of is acked comes again as a whole where the broker keeps no acks of
// single messages.
const (
	keptBatches = 1024
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
	again bool      // the broker counts its redeliveries
	back  []*entry  // settled, and their acks are held back
}

func newBatch(at place, size int32) *batch {
	return &batch{place: at, size: size, done: make([]uint64, (size+63)/64), left: int(size)}
}

func (b *batch) has(i int32) bool { return b.done[i/64]&(1<<(i%64)) != 0 }

func (b *batch) settle(i int32) {
	if b.has(i) {
		return
	}
	b.done[i/64] |= 1 << (i % 64)
	if b.left--; b.left == 0 {
		b.back = nil // the ack of the whole entry says it all
	}
}

// holdsBack reports whether acks of single messages wait for those of the others: the
// broker forgets the count of an entry with any ack of a part of it, and a message of
// it that fails again and again would never be at its last attempt.
func (b *batch) holdsBack() bool { return b != nil && b.again && b.left > 0 }

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
			l.sendBack(old)
		}
	}
}

// holdBack keeps an ack of a batch that holds them back. in.mu is held.
func (l *lane) holdBack(e *entry, now time.Time) {
	l.in.acks--
	e.batch.back = append(e.batch.back, e)
	l.drop(e, now)
}

// sendBack sends the acks that a batch holds back. in.mu is held.
func (l *lane) sendBack(b *batch) {
	b.again = false
	for _, e := range b.back {
		e.state = stateAcking
		l.in.acks++
		l.waiting = append(l.waiting, e)
	}
	if len(b.back) > 0 {
		b.back = nil
		wake(l.wake)
	}
}
