// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// traffic is what a process has to do in cases that look at something else:
// deliveries where something can be read, publishes where something can be
// published.
type traffic struct {
	t   *Trial
	p   *Process
	sub *Sub // nil where nothing can be read
	out *Collected
}

// traffic opens what the subject has, with the window of a host.
func (t *Trial) traffic(p *Process) *traffic {
	x := &traffic{t: t, p: p}
	if p.stdio != nil && t.Subject.Collect != nil {
		x.out = t.Collect(p) // who prints to a pipe that nobody reads stops
	}
	if t.About.reads() == "" && t.About.feeds() == "" {
		x.sub = p.Subscribe()
	}
	return x
}

// send gives the process n messages to deliver or to publish, and does not wait
// for what becomes of them but for receipts.
func (x *traffic) send(n int) []string {
	var keys []string
	if x.sub != nil {
		keys = x.t.Feed(x.p, n)
	}
	if x.t.About.Publishing != nil && (x.sub == nil || x.t.Subject.Inject != nil) {
		x.p.Publisher().Confirmed(Outgoing(x.t.Messages(x.t.Destination(), n, 0)...)...)
	}
	return keys
}

// round sends n messages through the process and settles what is delivered.
func (x *traffic) round(n int) { x.take(x.send(n)) }

// take takes and settles deliveries until each key has come.
func (x *traffic) take(keys []string) {
	if x.sub == nil {
		return
	}
	first, more := x.sub.TakeKeys(keys)
	for _, d := range first {
		more = append(more, d)
	}
	if x.t.About.Any(cumulative) {
		more = latest(more)
	}
	x.sub.Finish(more...)
}

// latest keeps the last delivery of each scope, whose ack covers the others.
func latest(ds []*Delivery) []*Delivery {
	last := map[string]*Delivery{}
	for _, d := range ds {
		if l := last[d.Scope]; l == nil || l.ID < d.ID {
			last[d.Scope] = d
		}
	}
	out := make([]*Delivery, 0, len(last))
	for _, d := range last {
		out = append(out, d)
	}
	return out
}

// end ends it in order.
func (x *traffic) end() {
	if x.sub != nil {
		x.sub.End()
	}
	if x.out != nil {
		x.out.Stop()
	}
}

// inject puts messages where the subscription reads them while the case goes on;
// the function that it returns waits for it and returns the keys of those that
// the transport has. Without an injector they go out on the publish stream, and
// their receipts are waited for.
func (t *Trial) inject(p *Process, ms []core.Message) (wait func() []string) {
	if t.Subject.Inject == nil {
		b := p.Publisher()
		sent := b.Publish(Outgoing(ms...)...)
		return func() []string {
			b.Await(sent)
			var keys []string
			for _, s := range sent {
				if s.Receipt.Status == frame.ReceiptConfirmed {
					keys = append(keys, keyOf(s.Message.Payload))
				}
			}
			return keys
		}
	}
	ctx, cancel := t.limited()
	var injecting sync.WaitGroup
	var err error
	injecting.Go(func() { err = t.Subject.Inject(ctx, t.place(p, t.Subscription()), ms) })
	t.cleanup(func() {
		cancel()
		injecting.Wait()
	})
	return func() []string {
		injecting.Wait()
		if err != nil {
			t.Fatalf("the injector failed: %v", err)
		}
		return Keys(ms)
	}
}

// closing calls Close alone and leaves the leash as it is.
func (p *Process) closing() {
	p.leave()
	limit := stretched(closeLimit)
	ctx, cancel := context.WithTimeout(p.t.Ctx, limit+p.t.Subject.Wait)
	defer cancel()
	r, err := p.link.Close(ctx, &transportpb.CloseRequest{Limit: int64(limit)})
	if err != nil {
		p.t.Fatalf("Close: %v", err)
	}
	p.t.keep(r.GetResume())
}

// gone reports whether the process has ended.
func (p *Process) gone() bool {
	select {
	case <-p.proc.Done():
		return true
	default:
		return false
	}
}

// goneWithin waits for the end of the process; false = it goes on.
func (p *Process) goneWithin(limit time.Duration) bool {
	wait := time.NewTimer(limit)
	defer wait.Stop()
	select {
	case <-p.proc.Done():
	case <-wait.C:
	}
	return p.gone()
}

// forget lets go of a stream that has ended.
func (p *Process) forget(s *Sub) {
	s.wait.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs = slices.DeleteFunc(p.subs, func(other *Sub) bool { return other == s })
}

// moments returns a function that waits a moment and says whether there is still
// time.
func (t *Trial) moments(limit time.Duration) func() bool {
	const moment = 20 * time.Millisecond
	until := time.Now().Add(limit)
	return func() bool {
		wait := time.NewTimer(moment)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-t.Ctx.Done():
		}
		return time.Now().Before(until) && t.Ctx.Err() == nil
	}
}
