// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// mostRetained is how many bytes of messages are kept to be delivered again. Nothing is
// delivered while there are more.
const mostRetained = 64 << 20

// staleCheck is how often a batch that cannot be handed out yet is looked at: once it
// is stale, what stands behind it is of interest.
const staleCheck = 200 * time.Millisecond

// Receive returns what there is, as far as there is room, and waits only for the first.
func (in *Intake) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	for {
		b, ok, err := in.gather(room)
		if ok || err != nil {
			return b, err
		}
		if err := in.wait(ctx); err != nil {
			return pluginapi.Batch{}, err
		}
	}
}

// gather takes what there is.
func (in *Intake) gather(room pluginapi.Room) (pluginapi.Batch, bool, error) {
	var out pluginapi.Batch
	now := time.Now()
	in.mu.Lock()
	fault := in.fault
	if fault == nil {
		in.overdue(now)
		in.impatient(now)
		in.batch.begin(room)
		in.collect(now)
	}
	out.Voids = in.voids()
	nacks := in.takeNacks()
	in.mu.Unlock()
	in.nack(nacks)
	if fault != nil {
		return out, false, fault
	}
	in.batch.end(&out)
	for i, b := range in.used {
		in.feed.Release(b)
		in.used[i] = nil
	}
	in.used = in.used[:0]
	return out, len(out.Voids) > 0 || len(out.Deliveries) > 0, nil
}

// voids are those since the last batch. They stand before its deliveries, so nothing
// that is in it may be among them. in.mu is held.
func (in *Intake) voids() []pluginapi.Void {
	if len(in.returns)+len(in.gone) == 0 {
		return nil
	}
	var out []pluginapi.Void
	out = appendVoid(out, in.returns, true)
	out = appendVoid(out, in.gone, false)
	in.returns, in.gone = in.returns[:0], in.gone[:0]
	return out
}

func appendVoid(to []pluginapi.Void, es []*entry, returns bool) []pluginapi.Void {
	if len(es) == 0 {
		return to
	}
	handles := make([]any, len(es))
	for i, e := range es {
		handles[i] = e
		es[i] = nil
	}
	return append(to, pluginapi.Void{Handles: handles, Returns: returns})
}

// full reports whether nothing more is delivered for now. in.mu is held.
func (in *Intake) full() bool { return in.acks >= mostAcks || in.retained >= mostRetained }

// collect takes messages as far as there is room: first those that come again from
// here, then new ones. in.mu is held.
func (in *Intake) collect(now time.Time) {
	b := &in.batch
	for l := range in.again {
		if !in.collectAgain(l, now) {
			return
		}
		delete(in.again, l)
	}
	for {
		if in.cur == nil {
			select {
			case in.cur = <-in.feed.Batches():
				in.at = 0
			default:
				return
			}
		}
		switch c := in.cur; {
		case c.Back || c.Lost:
			if len(b.items) > 0 {
				return // it voids what may be among them
			}
			in.mark(c, now)
		case c.Stale(): // all of it comes again
		default:
			if !in.collectBatch(c, now) {
				return
			}
		}
		in.used = append(in.used, in.cur)
		in.cur = nil
	}
}

// mark takes a word about a partition. in.mu is held.
func (in *Intake) mark(c *feed.Batch, now time.Time) {
	l := in.lane(c.Partition)
	if c.Lost {
		l.end(now)
		return
	}
	l.back(c.Epoch, now)
}

// collectAgain hands out what comes again from here, and reports whether that is all.
// in.mu is held.
func (in *Intake) collectAgain(l *lane, now time.Time) bool {
	for len(l.again) > 0 {
		e := l.again[0]
		if e.state == stateQueued {
			if in.batch.full(e.size) {
				return false
			}
			in.hand(e, e.msg, now)
		}
		l.again[0] = nil
		l.again = l.again[1:]
	}
	return true
}

// collectBatch hands out messages, and reports whether those were all. in.mu is held.
func (in *Intake) collectBatch(c *feed.Batch, now time.Time) bool {
	l := in.lane(c.Partition)
	l.epoch = max(l.epoch, c.Epoch)
	if len(l.again) > 0 {
		return false // they come first, and there is no room for them
	}
	l.partly = nil
	for ; in.at < len(c.Messages); in.at++ {
		msg := &c.Messages[in.at]
		size := sizeOf(msg)
		at := positionOf(msg.ID)
		if in.batch.full(size) || in.full() {
			l.partly = l.batches[at.place]
			return false
		}
		if fresh, later := l.admit(at, msg, c.Epoch, len(in.batch.items) > 0, now); later {
			return false
		} else if !fresh {
			continue
		}
		e := in.blocks.take()
		*e = entry{lane: l, at: at, epoch: c.Epoch, size: size, batch: l.join(at, msg.ID.Size)}
		l.enter(e)
		if e.batch != nil {
			e.batch.come(msg.Left)
			e.batch.again = e.batch.again || msg.Redelivered > 0
		}
		if !in.counts {
			e.retain(msg)
		}
		in.hand(e, msg, now)
	}
	return true
}

// admit looks whether a message is to be delivered. One that the host has, from the
// same consumer, is not delivered beside that: its verdict counts for both. Where the
// one that the host has is of an earlier consumer it is void. One that is acked is
// acked again. later = it is to be looked at again when what is collected is handed
// out. in.mu is held.
func (l *lane) admit(at position, msg *wire.Message, epoch uint64, collected bool, now time.Time) (fresh, later bool) {
	b := l.batches[at.place]
	if b != nil {
		b.asked = false
		b.come(msg.Left)
	}
	e := l.table[at]
	if e == nil {
		if at.batch < 0 || b == nil || at.batch >= b.size || !b.has(at.batch) {
			return true, false
		}
		if b.left == 0 {
			l.ackAgain(at, msg.ID.Size)
		}
		return false, false
	}
	switch e.state {
	case stateAcked:
		if !e.batch.holdsBack() {
			l.drop(e, now)
			l.ackAgain(at, msg.ID.Size)
		}
		return false, false
	case stateAcking:
		return false, false
	default:
		if e.epoch >= epoch {
			return false, false
		}
		if collected {
			return false, true
		}
		l.void(e, true, now)
		return true, false
	}
}

// ackAgain acks a message that the broker has sent once more. in.mu is held.
func (l *lane) ackAgain(at position, size int32) {
	e := l.in.blocks.take()
	*e = entry{lane: l, at: at, batch: l.join(at, size)}
	l.enter(e)
	l.ack(e)
}

// hand makes an entry one that the host has. in.mu is held.
func (in *Intake) hand(e *entry, msg *wire.Message, now time.Time) {
	e.take()
	if in.timeout > 0 {
		e.since = now
		in.hands.push(e)
	}
	in.batch.add(e, msg)
}

// wait waits until there may be something.
func (in *Intake) wait(ctx context.Context) error {
	batches := in.feed.Batches()
	d := in.untilOverdue()
	if in.cur != nil {
		batches = nil
		d = min(d, staleCheck)
	}
	if in.timer == nil {
		in.timer = time.NewTimer(d)
	} else {
		in.timer.Reset(d)
	}
	defer in.timer.Stop()
	select {
	case in.cur = <-batches:
		in.at = 0
	case <-in.changed:
	case <-in.timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
