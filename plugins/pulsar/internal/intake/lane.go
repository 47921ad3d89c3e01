// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"slices"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// How long, and how many, ids of acked messages are remembered where the broker may
// have sent them once more before it took the ack.
const (
	waryFor  = 10 * time.Second
	waryMost = 16 << 10
)

// lane is one partition.
type lane struct {
	in        *Intake
	partition *feed.Partition

	// Of Intake.mu.
	table   map[position]*entry // all but stateOver; one of a position
	batches map[place]*batch    // whose messages are in hand, or that may come again
	kept    []*batch            // of them, those of which nothing is in hand, oldest first
	again   []*entry            // stateQueued, in their order; and what has left that state since
	partly  *batch              // of which a part is handed out, and there is no room for the rest
	epoch   uint64              // of the latest consumer that has been heard of
	waryTo  time.Time           // acked messages may come once more until then
	acked   []*entry            // remembered for that, oldest first
	waiting []*entry            // stateAcking, that nobody has sent yet
	sending int                 // of the list that is out
	lost    bool                // it is read no more

	// Of the goroutine that sends acks.
	wake  chan struct{} // capacity 1: there are acks, or the consumer is back
	out   []*entry
	acks  []wire.Acked
	words []uint64 // that Left of them lies in
	round uint64   // counts their lists
}

// lane finds or makes the lane of a partition. in.mu is held.
func (in *Intake) lane(p *feed.Partition) *lane {
	l := in.lanes[p]
	if l == nil {
		l = &lane{in: in, partition: p, table: make(map[position]*entry), wake: make(chan struct{}, 1)}
		in.lanes[p] = l
		in.senders.Go(l.send)
	}
	return l
}

// wary reports whether acked messages may come once more: so do those whose acks are
// answered by a consumer that has been sent them before. in.mu is held.
func (l *lane) wary(now time.Time) bool {
	return !l.waryTo.IsZero() && now.Before(l.waryTo) || l.in.calls.epoch(l.partition) > l.epoch
}

// alert makes the lane wary: what it has may come again. in.mu is held.
func (l *lane) alert(now time.Time) { l.waryTo = now.Add(waryFor) }

// drop takes an entry out of the table. in.mu is held.
func (l *lane) drop(e *entry, now time.Time) {
	l.in.hands.remove(e)
	if e.retained {
		e.retained = false
		l.in.retained -= int64(e.size)
	}
	e.msg = nil
	if l.table[e.at] == e {
		delete(l.table, e.at)
		if e.batch != nil {
			l.leave(e.batch, now)
		}
	}
	e.leave(stateOver)
}

// enter puts an entry into the table. in.mu is held.
func (l *lane) enter(e *entry) {
	l.table[e.at] = e
	if e.batch != nil {
		e.batch.open++
	}
}

// void ends a delivery that the host has. in.mu is held.
func (l *lane) void(e *entry, returns bool, now time.Time) {
	if e.state == stateHanded || e.state == stateHeld {
		if returns {
			l.in.returns = append(l.in.returns, e)
		} else {
			l.in.gone = append(l.in.gone, e)
		}
	}
	l.drop(e, now)
	if e.late {
		l.remember(e, now)
	}
}

// remember makes it known that a message is acked whose delivery is over. in.mu is held.
func (l *lane) remember(e *entry, now time.Time) {
	n := l.in.blocks.take()
	*n = entry{lane: l, at: e.at, epoch: e.epoch, state: stateAcked, since: now}
	if e.batch != nil {
		n.batch = l.join(e.at, e.batch.size)
	}
	l.enter(n)
	l.acked = append(l.acked, n)
}

// back is a consumer that is there again: all that was read before it comes again.
// Acks that wait are sent all the same, for the broker takes them by id. in.mu is held.
func (l *lane) back(epoch uint64, now time.Time) {
	l.alert(now)
	l.epoch = max(l.epoch, epoch)
	l.yield(epoch, now)
	wake(l.wake)
}

// away is another consumer whose turn it is. in.mu is held.
func (l *lane) away(now time.Time) {
	l.alert(now)
	l.yield(math.MaxUint64, now)
}

// yield ends what was read in epochs below one and is not settled. in.mu is held.
func (l *lane) yield(below uint64, now time.Time) {
	l.calm()
	for _, e := range l.table {
		if e.epoch < below && e.state != stateAcking && e.state != stateAcked {
			l.void(e, true, now)
		}
	}
	l.again = slices.DeleteFunc(l.again, func(e *entry) bool { return e.state != stateQueued })
}

// end is a partition that is read no more. in.mu is held.
func (l *lane) end(now time.Time) {
	l.lost = true
	l.calm()
	for _, e := range l.table {
		l.void(e, false, now)
	}
	l.in.acks -= len(l.waiting)
	l.again, l.waiting = nil, nil
	delete(l.in.lanes, l.partition)
	wake(l.wake)
}

// rewind queues a delivery, and all that the host has from behind it, to be handed out
// once more: the order goes back to it. Those behind it are void, but for those that
// are held: they come when their own waits are over. in.mu is held.
func (l *lane) rewind(e *entry, now time.Time) {
	for _, x := range l.table {
		if x != e && x.at.compare(e.at) > 0 && x.state == stateHanded {
			l.in.returns = append(l.in.returns, x)
			x.returns = true
			if x.late {
				l.drop(x, now)
				l.remember(x, now)
			} else {
				l.queue(x, now)
			}
		}
	}
	l.queue(e, now)
	slices.SortFunc(l.again, func(a, b *entry) int { return a.at.compare(b.at) })
	l.in.again[l] = struct{}{}
}

// queue makes a new entry of a message that is to be handed out once more. in.mu is
// held.
func (l *lane) queue(e *entry, now time.Time) {
	n := l.in.blocks.take()
	*n = entry{
		lane: l, msg: e.msg, batch: e.batch, at: e.at, epoch: e.epoch, size: e.size,
		state: stateQueued, retained: true,
	}
	if n.batch != nil {
		n.batch.open++ // before drop, which would forget it
	}
	l.in.retained += int64(n.size)
	l.drop(e, now)
	l.table[n.at] = n
	l.again = append(l.again, n)
}
