// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// lastWait is what Close allows producers to close where its context has ended.
const lastWait = 500 * time.Millisecond

// Close takes nothing more, waits until every message has its receipt, and closes
// the producers. Where ctx ends first, what was not written is refused and the rest
// is unknown; the error is ctx's. When it returns every receipt has been given, and
// nothing is left at work.
func (o *Outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	for _, l := range o.lanes {
		for _, p := range l.parts {
			p.gathering.ripe = p.queue.first != nil
			p.pump()
		}
		l.rest()
	}
	o.leave()
	err := o.answered(ctx)
	if err != nil {
		o.end(fault.Passing(core.FaultUnavailable, "allow more time for the stop", "the endpoint was closed before the broker answered"))
		_ = o.answered(context.WithoutCancel(ctx))
	}
	o.mu.Lock()
	o.stop()
	for _, l := range o.lanes {
		if l.stage == open {
			l.close()
		}
	}
	if o.timer != nil && o.timer.Stop() {
		o.work.Done()
	}
	o.timer = nil
	o.leave()
	if parting := o.await(ctx); err == nil {
		err = parting
	}
	return err
}

// answered waits until every receipt has been given.
func (o *Outbox) answered(ctx context.Context) error {
	for o.count.Load() > 0 {
		select {
		case <-o.rest:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// await waits for goroutines, until a moment behind ctx's end; then they end what
// they wait for.
func (o *Outbox) await(ctx context.Context) (err error) {
	done := make(chan struct{})
	go func() {
		o.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		o.depart()
		return nil
	case <-ctx.Done():
	}
	t := time.NewTimer(lastWait)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		err = ctx.Err()
	}
	o.depart()
	<-done
	return err
}

// Fail ends all that is there and refuses what comes, for a reason that will not
// pass: the endpoint connects no more.
func (o *Outbox) Fail(f *core.Fault) {
	o.mu.Lock()
	o.failed = f
	o.mu.Unlock()
	o.end(f)
}

// end answers every message.
func (o *Outbox) end(why *core.Fault) {
	unsent := *why
	unsent.Message += "; the message was not sent"
	o.mu.Lock()
	for _, l := range o.lanes {
		l.refuse(&unsent)
		for _, p := range l.parts {
			for _, waiting := range []*list{&p.sent, &p.queue} {
				for e := waiting.first; e != nil; e = waiting.first {
					if e.tries == 0 {
						e.finish(e.without(&unsent))
					} else {
						e.finish(e.without(why))
					}
				}
			}
		}
		l.rest()
	}
	o.leave()
}

// arm sets the timer for the oldest message; o.mu is held.
func (o *Outbox) arm(d time.Duration) {
	o.work.Add(1)
	o.timer = time.AfterFunc(d, o.ring)
}

// ring answers what has waited as long as it may, and sets the timer for what is due
// next.
func (o *Outbox) ring() {
	defer o.work.Done()
	o.mu.Lock()
	o.timer = nil
	now := o.clock()
	next, any := now+o.c.Timeout, false
	check := func(waiting *list) (late bool) {
		for e := waiting.first; e != nil && e.due <= now; e = waiting.first {
			e.finish(e.overdue())
			late = true
		}
		if waiting.first != nil {
			next, any = min(next, waiting.first.due), true
		}
		return late
	}
	for _, l := range o.lanes {
		check(&l.queue)
		for _, p := range l.parts {
			p.doubt = check(&p.sent) || p.doubt
			check(&p.queue)
			if s := p.session; p.doubt && p.sent.first == nil && s != nil && !s.closing {
				p.renew()
			}
		}
		l.rest()
	}
	if any {
		o.arm(next - now)
	}
	o.leave()
}
