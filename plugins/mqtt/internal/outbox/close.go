// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// Close takes nothing more and waits until every message has its receipt: open
// handshakes of QoS 2 are completed, over a reconnect too. Where ctx ends first
// what was never written is refused, and the rest is unknown; the error is ctx's.
// When it returns every receipt has been given.
func (o *Outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	idle := o.await()
	o.pump()
	o.leave()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
		o.end(fault.Passing(core.FaultUnavailable, "allow more time for the stop", "the endpoint was closed before the server answered"))
		<-idle
	}
	o.mu.Lock()
	o.stopTimer()
	o.suspect.relax(o)
	expired := o.expired.take(true)
	o.mu.Unlock()
	o.timers.Wait()
	o.tellExpired(expired)
	return err
}

// await returns what is closed once every receipt is given; o.mu is held.
func (o *Outbox) await() <-chan struct{} {
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	return o.idle
}

// Fail ends all that is there and refuses what comes, for a reason that will not
// pass: the endpoint connects no more.
func (o *Outbox) Fail(f *core.Fault) {
	o.mu.Lock()
	o.failed = f
	o.mu.Unlock()
	o.end(f)
}

// end answers every message. What a living connection was given it may write yet.
func (o *Outbox) end(why *core.Fault) {
	o.mu.Lock()
	for e := o.queue.first; e != nil && o.link != nil; e = e.next {
		e.maybe = e.maybe || e.given
	}
	o.unlink(EndOther)
	for e := o.released.first; e != nil; e = o.released.first {
		o.finish(e, unsent(e, why))
	}
	for e := o.queue.first; e != nil; e = o.queue.first {
		o.finish(e, unsent(e, why))
	}
	o.leave()
}

// arm sets the timer for messages that wait for a connection, unless it rings
// before; o.mu is held.
func (o *Outbox) arm(at time.Time) {
	if o.timer != nil {
		return // it rings before: at least as long ago was added what it is for
	}
	o.timers.Add(1)
	o.alarm++
	alarm := o.alarm
	o.timer = time.AfterFunc(time.Until(at), func() {
		defer o.timers.Done()
		o.ring(alarm)
	})
}

// stopTimer ends the timer; o.mu is held.
func (o *Outbox) stopTimer() {
	if o.timer != nil && o.timer.Stop() {
		o.timers.Done()
	}
	o.timer = nil
}

// ring refuses what has waited long enough for a connection.
func (o *Outbox) ring(alarm uint64) {
	o.mu.Lock()
	now := time.Now()
	if o.timer == nil || o.alarm != alarm { // stopped when it had rung
		o.mu.Unlock()
		return
	}
	o.timer = nil
	why := fault.Passing(core.FaultUnavailable, "see why the server cannot be reached", "there has been no connection for %s", shown(o.c.Wait))
	var next time.Time
	for e := o.queue.first; e != nil; {
		following := e.next
		since := o.since
		if e.since.After(since) {
			since = e.since
		}
		switch due := since.Add(o.c.Wait); {
		case e.maybe:
		case due.After(now):
			if next.IsZero() || due.Before(next) {
				next = due
			}
		default:
			o.finish(e, unsent(e, why))
		}
		e = following
	}
	if !next.IsZero() {
		o.arm(next)
	}
	o.leave()
}

func shown(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
