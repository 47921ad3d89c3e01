// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The bounds of acks.
const (
	acksAtOnce = 4096    // messages of one command
	mostAcks   = 1 << 16 // without an answer: nothing is delivered beyond that
)

// The waits between tries of acks that the broker did not take: while its connection
// is gone it comes back by itself, and says so.
const (
	ackRetry     = 100 * time.Millisecond
	ackRetryMost = 5 * time.Second
	lastAcks     = 2 * time.Second // for all tries at the end
)

// settle takes the host's ack of a delivery. in.mu is held.
func (l *lane) settle(e *entry) {
	l.in.hands.remove(e)
	if e.retained {
		e.retained = false
		l.in.retained -= int64(e.size)
	}
	e.msg = nil
	l.ack(e)
}

// ack queues the ack of a message. in.mu is held.
func (l *lane) ack(e *entry) {
	e.leave(stateAcking)
	if e.batch != nil {
		e.batch.settle(e.at.batch)
	}
	if l.lost {
		l.drop(e, time.Now())
		return
	}
	l.in.acks++
	l.waiting = append(l.waiting, e)
	if len(l.waiting) == 1 && l.sending == 0 {
		wake(l.wake)
	}
}

// send sends the lane's acks until the intake is done: those that have gathered while
// the broker answered the ones before.
func (l *lane) send() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	pause, failing := ackRetry, false
	for {
		if !l.gather() {
			if l.ended() {
				return
			}
			select {
			case <-l.wake:
			case <-l.in.done:
				return
			}
			continue
		}
		err := l.in.calls.ack(l.partition, l.acks)
		l.answered(err)
		if err == nil {
			pause, failing = ackRetry, false
			continue
		}
		if !failing {
			failing = true
			l.in.log.Debug("acks were not taken and are sent again", "topic", l.partition.Scope, "error", err)
		}
		timer.Reset(pause)
		pause = min(2*pause, ackRetryMost)
		select {
		case <-timer.C:
		case <-l.wake: // the consumer is back
			pause = ackRetry
		case <-l.in.closing:
			if !l.last(timer) {
				return
			}
		case <-l.in.done:
			return
		}
	}
}

// last waits before a try while the intake closes.
func (l *lane) last(timer *time.Timer) bool {
	timer.Reset(ackRetry)
	select {
	case <-timer.C:
		return true
	case <-l.in.done:
		return false
	}
}

func (l *lane) ended() bool {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	return l.lost
}

// gather takes the acks that wait, and reports whether there are any.
func (l *lane) gather() bool {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	l.out, l.acks, l.words = l.out[:0], l.acks[:0], l.words[:0]
	l.round++
	n := 0
	for ; n < len(l.waiting) && len(l.out) < acksAtOnce; n++ {
		e := l.waiting[n]
		switch b := e.batch; {
		case b == nil:
			l.acks = append(l.acks, e.at.whole())
		case b.holdsBack():
			l.holdBack(e, time.Now())
			continue
		case b.round != l.round: // once a command
			b.round = l.round
			l.acks = append(l.acks, l.settled(b))
		}
		l.out = append(l.out, e)
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
	l.sending = len(l.out)
	if n > 0 && l.sending == 0 {
		wake(l.in.flushed)
	}
	return l.sending > 0
}

// settled acks what is settled of a batch. in.mu is held.
func (l *lane) settled(b *batch) wire.Acked {
	a := b.place.whole()
	if b.left > 0 {
		at := len(l.words)
		l.words = b.unsettled(l.words)
		a.Left, a.Size = l.words[at:], b.size
	}
	return a
}

// answered takes the broker's answer to the acks that are out.
func (l *lane) answered(err error) {
	in := l.in
	in.mu.Lock()
	full := in.full()
	if err != nil && !l.lost {
		l.waiting = slices.Insert(l.waiting, 0, l.out...)
	} else {
		now := time.Now()
		for i, e := range l.out {
			l.taken(e, now)
			l.out[i] = nil
		}
		in.acks -= len(l.out)
	}
	l.sending = 0
	full = full && !in.full()
	in.mu.Unlock()
	wake(in.flushed)
	if full {
		wake(in.changed)
	}
}

// taken is an ack that the broker has. in.mu is held.
func (l *lane) taken(e *entry, now time.Time) {
	if e.state != stateAcking {
		return
	}
	if !l.wary(now) || l.table[e.at] != e {
		l.drop(e, now)
		e.spent = true
		l.forget(now)
		return
	}
	e.state, e.since = stateAcked, now
	l.acked = append(l.acked, e)
	l.forget(now)
}

// forget ends that acked messages are remembered, where it is time. in.mu is held.
func (l *lane) forget(now time.Time) {
	n := 0
	for n < len(l.acked) && (len(l.acked)-n > waryMost || now.Sub(l.acked[n].since) > waryFor) {
		if e := l.acked[n]; e.state == stateAcked {
			l.drop(e, now)
		}
		l.acked[n] = nil
		n++
	}
	l.acked = l.acked[n:]
}

// flush waits until no ack waits for its answer, or gives up, and returns how many do.
func (in *Intake) flush(ctx context.Context) int {
	limit := time.NewTimer(lastAcks)
	defer limit.Stop()
	for {
		in.mu.Lock()
		left := in.acks
		in.mu.Unlock()
		if left == 0 {
			return 0
		}
		select {
		case <-in.flushed:
		case <-limit.C:
			return left
		case <-ctx.Done():
			return left
		}
	}
}
