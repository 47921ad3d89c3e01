// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// lastWait is what Close allows producers to close where its context has ended.
const lastWait = 500 * time.Millisecond

// Close takes nothing more, waits until every message has its receipt, and closes
// the producers. Where ctx ends first, what the library was not given is refused and
// the rest is unknown; the error is ctx's. When it returns every receipt has been
// given. The library's calls that are still out then end with its client.
func (o *Outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	flushed := o.flush(ctx)
	o.mu.Unlock()
	err := o.answered(ctx)
	flushed()
	if err != nil {
		o.end(fault.Passing(core.FaultUnavailable, "allow more time for the stop", "the endpoint was closed before the broker answered"))
		_ = o.answered(context.WithoutCancel(ctx))
	}
	o.mu.Lock()
	if !o.stopped() {
		close(o.stop)
	}
	for p := range o.producers {
		p.discard()
	}
	if o.timer != nil && o.timer.Stop() {
		o.work.Done()
	}
	o.timer = nil
	o.leave()
	if closing := o.await(ctx); err == nil {
		err = closing
	}
	return err
}

// flush has the library send what it gathers, and returns what ends that: no call may
// be out when a producer is closed, for it sends to a channel that is closed then.
// o.mu is held.
func (o *Outbox) flush(ctx context.Context) (flushed func()) {
	if o.c.Batch <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	for p := range o.producers {
		calls.Go(func() { p.flush(ctx) })
	}
	return func() {
		cancel()
		calls.Wait()
	}
}

// flush contains a panic of Flush on a producer that closes itself at that moment.
// Each message has a receipt of its own, so its error says nothing more.
func (p *producer) flush(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			p.lane.o.c.Log.Debug("Pulsar producer closed while it was flushed", "topic", p.lane.base, "panic", v)
		}
	}()
	_ = p.library.FlushWithCtx(ctx)
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

// await waits for goroutines, a moment longer than ctx.
func (o *Outbox) await(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		o.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	t := time.NewTimer(lastWait)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return ctx.Err()
	}
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
	o.mu.Lock()
	for _, l := range o.lanes {
		l.refuse(&core.Fault{
			Code: why.Code, Transient: why.Transient, Diagnostics: why.Diagnostics,
			Message: why.Message + "; the message was not sent",
		})
	}
	for p := range o.producers {
		if p.sent.first != nil {
			p.discard() // so that nothing is sent later
		}
	}
	for p := range o.closing {
		for e := p.sent.first; e != nil; e = p.sent.first {
			f := because(e.name, why)
			maybe(f)
			e.finish(pluginapi.Unknown(f))
		}
	}
	o.leave()
}

// arm sets the timer for the oldest message; o.mu is held.
func (o *Outbox) arm(d time.Duration) {
	o.work.Add(1)
	o.timer = time.AfterFunc(d, o.ring)
}

// ring answers what has waited as long as it may, and sets the timer for what is due
// next. A producer that has not answered is closed: else what it has might be sent
// when nobody counts on it any more.
func (o *Outbox) ring() {
	defer o.work.Done()
	o.mu.Lock()
	o.timer = nil
	now := time.Since(o.born)
	next := now + o.c.Timeout
	any := false
	check := func(l *list) {
		for e := l.first; e != nil && e.due <= now; e = l.first {
			if e.by != nil {
				e.by.discard()
			}
			e.finish(e.overdue())
		}
		if l.first != nil {
			next, any = min(next, l.first.due), true
		}
	}
	for p := range o.closing {
		check(&p.sent)
	}
	for p := range o.producers {
		check(&p.sent)
	}
	for _, l := range o.lanes {
		check(&l.queue)
		if l.queue.first != nil && l.producer == nil {
			l.need()
		}
		l.rest()
	}
	if any {
		o.arm(next - now)
	}
	o.leave()
}
