// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// The limits of closing an endpoint: long enough to flush to a slow broker, and
// next to nothing once the drain limit is over.
const (
	closeLimit     = 5 * time.Second
	closeLimitLate = 100 * time.Millisecond
)

// shownLimit is the drain limit for people: 0 is none.
func (r *run) shownLimit() any {
	if r.opts.drainLimit > 0 {
		return r.opts.drainLimit
	}
	return "none"
}

// stop ends a run that serves, and returns cause together with what was cut
// off.
func (r *run) stop(cause error) error {
	r.state.Store(stateStopping)
	r.host.enter(StateStopping, cause)
	r.log.Info("host stops", "limit", r.shownLimit())
	ctx, cancel := r.drainContext()
	defer cancel()
	told := r.tellWaits()
	var lost abandoned
	for _, s := range r.subs {
		s.ended.Store(s.over())
		s.lane.StopIntake()
	}
	r.eachLane(func(s *subscribed) { lost.left(s.lane.Drain(ctx)) })
	for _, w := range r.waiting.Drain(ctx) {
		lost.copies(w)
	}
	r.eachLane(func(s *subscribed) { // what hooks publish needs the endpoints
		if s.hooks != nil {
			lost.hooks(s, s.hooks.drain(ctx))
		}
	})
	r.each(func(a *attached) []Finding {
		if n := a.requests.room.drain(ctx); n > 0 {
			a.log.Warn("requests without a reply were cut off", "count", n)
		}
		if n := a.outbox.Drain(ctx); n > 0 {
			a.log.Warn("publishes without a receipt were cut off", "count", n)
			lost.publishes(a, a.outbox.Sendings())
		}
		return nil
	})
	told()
	r.close(ctx)
	for _, s := range r.subs {
		if s.hooks != nil {
			lost.hooks(s, s.hooks.late())
		}
	}
	err := errors.Join(cause, lost.err())
	if err != nil {
		r.log.Warn("host stopped", "error", err)
	} else {
		r.log.Info("host stopped")
	}
	return err
}

// drainContext returns the context of a stop's waits: the drain limit, cut by an
// abort.
func (r *run) drainContext() (context.Context, context.CancelFunc) {
	if r.opts.drainLimit > 0 {
		return context.WithTimeout(r.host.alive, r.opts.drainLimit)
	}
	return context.WithCancel(r.host.alive)
}

// eachLane calls f for all subscriptions at once and waits.
func (r *run) eachLane(f func(s *subscribed)) {
	var all sync.WaitGroup
	for _, s := range r.subs {
		all.Go(func() { f(s) })
	}
	all.Wait()
}

// close ends lanes, endpoints with their plugins, and what waits, in this order.
// drain is the context of the waits before.
func (r *run) close(drain context.Context) {
	limit := closeLimit
	if drain.Err() != nil {
		limit = closeLimitLate
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r.eachLane(func(s *subscribed) {
		s.sub.pausing.end()
		if err := s.lane.Close(ctx); err != nil {
			s.on.log.Warn("handlers did not return and are left behind", "subscription", s.sub.name, "error", err)
		}
	})
	r.each(func(a *attached) []Finding {
		a.close(limit)
		a.outbox.Close()
		return nil
	})
	r.waiting.Close() // last: the others use its clock
	r.finish()
}

// abandonStart takes back a start that was built but does not serve.
func (r *run) abandonStart() {
	r.state.Store(stateStopping)
	r.host.enter(StateStopping, nil)
	r.close(context.Background())
}

// finish waits for the run's own goroutines.
func (r *run) finish() {
	r.end()
	r.goroutines.Wait()
}

// close asks the plugin to close its endpoint and ends its process.
func (a *attached) close(limit time.Duration) {
	if g := a.current(); g != nil {
		if a.run.host.alive.Err() != nil {
			g.Kill()
		} else {
			a.flush(g, limit)
		}
	}
	a.release()
	<-a.supervised
	a.become(EndpointStopped, nil)
}

// flush calls the plugin's Close.
func (a *attached) flush(g *generation, limit time.Duration) {
	ctx, cancel := context.WithTimeout(a.run.host.alive, limit)
	defer cancel()
	if _, err := g.Link().Close(ctx, &transportpb.CloseRequest{Limit: int64(limit)}); err != nil {
		a.log.Warn("endpoint did not close in order", "error", err)
	}
}

// abandoned collects what a stop cut off.
type abandoned struct {
	mu   sync.Mutex
	list []Abandoned
}

// entry returns the entry of a subscription.
func (l *abandoned) entry(endpoint, subscription string) *Abandoned {
	i := slices.IndexFunc(l.list, func(a Abandoned) bool {
		return a.Endpoint == endpoint && a.Subscription == subscription
	})
	if i < 0 {
		i = len(l.list)
		l.list = append(l.list, Abandoned{Endpoint: endpoint, Subscription: subscription})
	}
	return &l.list[i]
}

// left adds what a lane left.
func (l *abandoned) left(left settlement.Left) {
	if left.Empty() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(left.Endpoint, left.Subscription)
	e.Handlers += left.Handlers
	e.Cancelled += left.Cancelled
	e.Unhandled += left.Unhandled
	e.Settlements += left.Settlements
	e.Messages = append(e.Messages, left.Running...)
	e.Lost += left.Lost
}

// copies adds waiting copies that are lost.
func (l *abandoned) copies(w settlement.WaitingCopies) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(w.Endpoint, w.Subscription).Copies += w.Count
}

// hooks adds calls that were not made.
func (l *abandoned) hooks(s *subscribed, n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(s.on.endpoint.name, s.sub.name).Hooks += n
}

// publishes adds the application's publishes whose receipts were cut off.
func (l *abandoned) publishes(a *attached, n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(a.endpoint.name, "").Publishes += n
}

// err returns what was cut off as an error, nil for nothing.
func (l *abandoned) err() error {
	if len(l.list) == 0 {
		return nil
	}
	slices.SortFunc(l.list, func(a, b Abandoned) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Subscription, b.Subscription))
	})
	return &AbandonedError{Subscriptions: l.list}
}
