// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math/bits"
	"slices"
	"time"
)

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
	hand  int       // messages that the host has
	due   time.Time // when the nack that waits is sent at the latest; zero = none waits
	asked bool      // the broker is asked for it, and it has not come since
	round uint64    // lane.round of the last command that acks it
}

// patience is a batch whose nack waits.
type patience struct {
	lane  *lane
	batch *batch
	due   time.Time // as long as it is batch.due
}

func newBatch(at place, size int32) *batch {
	return &batch{place: at, size: size, done: make([]uint64, (size+63)/64), left: int(size)}
}

func (b *batch) has(i int32) bool { return b.done[i/64]&(1<<(i%64)) != 0 }

// unsettled appends the bits of the messages that are not settled.
func (b *batch) unsettled(dst []uint64) []uint64 {
	for _, w := range b.done {
		dst = append(dst, ^w)
	}
	if rest := b.size % 64; rest > 0 {
		dst[len(dst)-1] &= 1<<rest - 1
	}
	return dst
}

func (b *batch) settle(i int32) {
	if b.has(i) {
		return
	}
	b.done[i/64] |= 1 << (i % 64)
	if b.left--; b.left == 0 {
		b.back = nil // the ack of the whole entry says it all
	}
}

// come takes the bits of the messages that have come of the batch, nil = all: what has
// not is settled, by another consumer or by compaction.
func (b *batch) come(left []uint64) {
	if left == nil {
		return
	}
	for i := range b.done {
		gone := ^b.done[i]
		if i < len(left) {
			gone &^= left[i]
		}
		if rest := b.size % 64; rest > 0 && i == len(b.done)-1 {
			gone &= 1<<rest - 1
		}
		b.done[i] |= gone
		b.left -= bits.OnesCount64(gone)
	}
}

// holdsBack reports whether acks of single messages wait for those of the others: the
// broker forgets the count of an entry with any ack of a part of it, and a message of
// it that fails again and again would never be at its last attempt.
func (b *batch) holdsBack() bool { return b != nil && b.again && b.left > 0 }

// askAgain asks the broker for an entry again. One of which the host has other messages
// waits until those are settled, Config.BatchWait at most: each nack raises the count of
// the whole entry, and messages that fail beside each other would use up each other's
// attempts. e is still in hand. in.mu is held.
func (in *Intake) askAgain(e *entry, now time.Time) {
	switch b := e.batch; {
	case b == nil:
		in.nacks = append(in.nacks, nack{e.lane.partition, e.at.id()})
	case b.hand == 0 || b.hand == 1 && e.inBatch:
		in.nackNow(e.lane, b)
	case b.due.IsZero():
		b.due = now.Add(in.batchWait)
		in.patient = append(in.patient, patience{e.lane, b, b.due})
	}
}

// impatient sends the nacks that have waited long enough. in.mu is held.
func (in *Intake) impatient(now time.Time) {
	n := 0
	for ; n < len(in.patient) && !now.Before(in.patient[n].due); n++ {
		if p := in.patient[n]; p.batch.due.Equal(p.due) {
			in.nackNow(p.lane, p.batch)
		}
	}
	in.patient = slices.Delete(in.patient, 0, n)
}

// nackNow sends the nack that waits, unless the entry is to come again by another one,
// with all that is not settled and not in hand. in.mu is held.
func (in *Intake) nackNow(l *lane, b *batch) {
	if !b.asked {
		b.asked = true
		in.nacks = append(in.nacks, nack{l.partition, b.place.id()})
	}
	b.due = time.Time{}
}

// take and leave count what the host has of a batch; with the last of it the nack that
// waits is due. in.mu is held.
func (e *entry) take() {
	e.state = stateHanded
	if e.batch != nil {
		e.batch.hand++
		e.inBatch = true
	}
}

func (e *entry) leave(to state) {
	e.state = to
	if !e.inBatch {
		return
	}
	e.inBatch = false
	if b := e.batch; b.hand == 1 && !b.due.IsZero() {
		e.lane.in.nackNow(e.lane, b)
	}
	e.batch.hand--
}

// calm ends the waits of nacks: what they ask for comes again without them. in.mu is
// held.
func (l *lane) calm() {
	for _, b := range l.batches {
		b.due = time.Time{}
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
// it is acked, unless it was asked for again, so that more of it may be on the way, or
// the rest of it waits for room; else it is remembered for when it comes again. in.mu is
// held.
func (l *lane) leave(b *batch, now time.Time) {
	if b.open--; b.open > 0 || l.batches[b.place] != b {
		return
	}
	if b.left == 0 && !b.again && l.partly != b && !l.wary(now) {
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
