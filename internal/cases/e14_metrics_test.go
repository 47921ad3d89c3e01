// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// Samples are taken in bursts; the pause leaves the machine to what is looked at.
const (
	sampleBurst = 16
	samplePause = 5 * time.Millisecond
)

// workload is a service whose messages end in all ways, and what its handler
// knows of them.
type workload struct {
	*service
	b      *bench
	door   *door // before the plugin
	caps   core.Capabilities
	began  atomic.Uint64 // handler runs
	inside atomic.Bool   // a handler runs

	acked, retried, dropped, dead atomic.Uint64 // what the handler said
}

// newWorkload makes a service that reads orders, three attempts each, of a
// source with these capabilities.
func newWorkload(t *testing.T, caps core.Capabilities) *workload {
	t.Helper()
	w := &workload{b: newBench(t), caps: caps}
	w.service = newService(t, host.WithRestartBackoff(20*time.Millisecond, 20*time.Millisecond), host.WithBreaker(1000, time.Minute))
	set := w.b.Settings.With("orders", caps)
	set.Session = "kept"
	w.door = newDoor(t)
	in := w.Endpoint("mem", host.Plugin{Name: "memory", Path: w.door.before(w.b.Path)}, set)
	host.Handle(in.Subscription("orders"), w.handle,
		append(backTo(in, "orders", caps), host.MaxAttempts(3), host.DeadLetterTo(in.To("graves")))...)
	return w
}

// handle does what the last digit of the payload says.
func (w *workload) handle(_ context.Context, m *host.Message[[]byte]) error {
	w.began.Add(1)
	w.inside.Store(true)
	defer w.inside.Store(false)
	first := m.Attempt() < 2
	switch m.Value[len(m.Value)-1] {
	case '0': // to the end of its attempts
		if m.Last() {
			w.dead.Add(1)
		} else {
			w.retried.Add(1)
		}
		return errors.New("no stock")
	case '1':
		w.dropped.Add(1)
		return host.Drop(errors.New("unwanted"))
	case '2':
		if first {
			w.retried.Add(1)
			return host.Retry(errors.New("not yet"))
		}
	case '3':
		if first {
			w.retried.Add(1)
			return host.RetryAfter(5*time.Millisecond, errors.New("not yet"))
		}
	case '4':
		w.dead.Add(1)
		return host.DeadLetter(errors.New("poison"))
	}
	w.acked.Add(1)
	return nil
}

// feed publishes messages from first on.
func (w *workload) feed(first, n int) {
	ms := make([]memory.Message, n)
	for i := range ms {
		ms[i] = memory.Text(fmt.Sprintf("%06d", first+i))
	}
	w.b.Publish("orders", ms...)
}

// counters are those of orders.
func (w *workload) counters() host.Counters { return w.endpoint().Subscriptions[0].Counters }

// endpoint is what Health says of the endpoint.
func (w *workload) endpoint() host.EndpointHealth { return w.Health().Endpoints[0] }

// rests waits until nothing is in work and the broker has nothing left.
func (w *workload) rests() {
	w.t.Helper()
	w.b.must(w.b.WaitIdle(w.b.ctx, "orders"))
	eventually(w.t, "nothing is in work", func() bool { return w.counters().InWork == 0 })
}

// ended is what a delivery can end in, and what has not ended.
func ended(c host.Counters) uint64 {
	return c.Acked + c.Retried + c.Dropped + c.DeadLettered + c.Parked + c.Released + c.Stale + c.InWork
}

// grown reports whether no count has fallen but for the gauges.
func grown(now, former host.Counters) bool {
	return now.Received >= former.Received && now.Acked >= former.Acked && now.Retried >= former.Retried &&
		now.Dropped >= former.Dropped && now.DeadLettered >= former.DeadLettered && now.Parked >= former.Parked &&
		now.Released >= former.Released && now.Stale >= former.Stale && now.Lost >= former.Lost &&
		now.Failed >= former.Failed && now.Reports >= former.Reports
}

// sample takes samples until over is closed, and checks each of them, also
// against what the handler has seen before and after it was taken.
func (w *workload) sample(over <-chan struct{}) {
	var former host.Counters
	n := 0
	for {
		select {
		case <-over:
			w.t.Logf("%d samples", n)
			return
		default:
		}
		if n%sampleBurst == 0 {
			time.Sleep(samplePause)
		}
		before, inside := w.began.Load(), w.inside.Load()
		c := w.counters()
		still := w.inside.Load()
		after := w.began.Load()
		n++
		switch settled := c.Acked + c.Retried + c.Dropped + c.DeadLettered + c.Parked; {
		case ended(c) != c.Received, c.Waiting > c.InWork, c.InWork > c.Received:
			w.t.Errorf("does not add up: %+v", c)
		case !grown(c, former):
			w.t.Errorf("counts fell: from %+v to %+v", former, c)
		case c.Received < before:
			w.t.Errorf("%d handler runs, and received only %+v", before, c)
		case inside && still && before == after && c.InWork == 0:
			w.t.Errorf("a handler ran, and nothing is in work: %+v", c)
		case w.caps.Counts == core.CountNone && settled > after: // a counting source's are settled over the cap without a run
			w.t.Errorf("%d handler runs, and settled more: %+v", after, c)
		}
		if w.t.Failed() {
			return
		}
		former = c
	}
}

// allKinds are the kinds of reference 2.1, with a lease short enough to wait for.
func allKinds() map[string]core.Capabilities {
	lease := settings.KindT()
	lease.MaxHold = 3 * time.Second
	return map[string]core.Capabilities{
		"A": settings.KindA(), "B": settings.KindB(), "C": settings.KindC(), "D": settings.KindD(),
		"K": settings.KindK(), "M": settings.KindM(), "T": lease, "U": settings.KindU(),
	}
}

// E-14: what is counted is what happened, on every kind of source.
func TestE14CountersAreWhatHappened(t *testing.T) {
	t.Parallel()
	for name, caps := range allKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 200
			w := newWorkload(t, caps)
			w.serve()
			w.feed(0, n)
			w.b.must(w.b.WaitPublished(w.b.ctx, "graves", n/5))
			w.rests()
			got, account := w.counters(), w.b.Account("orders")
			want := host.Counters{
				Received: uint64(account.Deliveries), Acked: w.acked.Load(), Retried: w.retried.Load(),
				Dropped: w.dropped.Load(), DeadLettered: w.dead.Load(),
			}
			got.Failed = 0
			if got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
			if want.Acked != n*7/10 || want.Dropped != n/10 || want.DeadLettered != n/5 || want.Retried != n*4/10 {
				t.Errorf("the handler said %+v", want)
			}
			sent := uint64(account.Published - n + len(w.b.Published("graves")))
			if p := w.endpoint().Published; p != (host.Published{Confirmed: sent}) {
				t.Errorf("published %+v, want %d confirmed", p, sent)
			}
			w.stops()
		})
	}
}

// E-14: the connection is cut and comes back, the plugin is killed, the dead
// letter's disk is full, and all the while the counters add up at every sample.
// The endpoint is down with a reason when it is down, and not longer.
func TestE14CountersAddUpUnderFaults(t *testing.T) {
	t.Parallel()
	for name, caps := range allKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, caps)
			w.serve()
			over := make(chan struct{})
			var aside sync.WaitGroup
			aside.Go(func() { w.sample(over) })
			fed := 0
			feed := func() {
				w.feed(fed, 400)
				fed += 400
			}
			for range 3 {
				feed()
				w.cut()
				feed()
				w.killed()
				feed()
				heal := w.b.FailPublishes("graves", memory.PublishFault{
					Status: memory.PublishRefused, Fault: &core.Fault{Code: core.FaultUnavailable, Message: "disk is full", Transient: true},
				})
				eventually(t, "refused publishes are counted", func() bool { return w.endpoint().Published.Refused > 0 })
				heal()
				if t.Failed() {
					break
				}
			}
			w.rests()
			close(over)
			aside.Wait()
			c, account := w.counters(), w.b.Account("orders")
			t.Logf("%+v; the broker: %v", c, account)
			if err := account.Check(); err != nil {
				t.Error(err)
			}
			if c.Received > uint64(account.Deliveries) {
				t.Errorf("received %d of %d deliveries", c.Received, account.Deliveries)
			}
			if lost := uint64(account.Lost); caps.Unsettled != core.UnsettledLost && lost > 0 {
				t.Errorf("the source lost %d messages", lost)
			}
			w.stops()
		})
	}
}

// cut cuts the connection and brings it back.
func (w *workload) cut() {
	w.t.Helper()
	began := time.Now()
	w.b.Down()
	var down host.EndpointHealth
	eventually(w.t, "it is told that the connection is lost", func() bool {
		down = w.endpoint()
		return down.State == host.EndpointDisconnected
	})
	s := down.Subscriptions[0]
	if down.Since.Before(began) || down.Reason == "" || s.State != host.SubscriptionDown || s.Reason == "" || w.Ready() {
		w.t.Errorf("without a connection it is %+v", down)
	}
	began = time.Now()
	w.b.Up()
	eventually(w.t, "it is told that the connection is back", w.Ready)
	if up := w.endpoint(); up.State != host.EndpointUp || up.Since.Before(began) || up.Reason != "" {
		w.t.Errorf("with the connection again it is %+v", up)
	}
}

// killed kills the plugin and waits for the next one, which does not come before
// it was looked at what is told of the death.
func (w *workload) killed() {
	w.t.Helper()
	c, former := w.b.client("mem"), w.endpoint()
	w.door.shut()
	w.b.must(c.Kill())
	var now host.EndpointHealth
	eventually(w.t, "it is told that the plugin has died", func() bool {
		now = w.endpoint()
		return now.State == host.EndpointRestarting
	})
	if !strings.Contains(now.Reason, "killed") || now.Subscriptions[0].State != host.SubscriptionDown || w.Ready() {
		w.t.Errorf("without its plugin it is %+v", now)
	}
	w.door.open()
	eventually(w.t, "it serves again", w.Ready)
	if up := w.endpoint(); up.Generation <= former.Generation {
		w.t.Errorf("the next plugin is %+v, and was %+v", up, former)
	}
}

// E-14: a permission that is taken away at run time ends the service, which says
// for what; nothing seems to be alive that handles nothing.
func TestE14PermissionIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, settings.KindA())
	w.serve()
	w.feed(5, 1)
	w.rests()
	w.b.End("orders", &core.Fault{Code: core.FaultDenied, Message: "no permission to read orders"})
	err := w.ends()
	var lost *host.EndpointError
	if !errors.As(err, &lost) || lost.Subscription != "orders" || lost.Received != 1 {
		t.Fatalf("got %v, want an *EndpointError of orders", err)
	}
	h := w.Health()
	if s := h.Endpoints[0].Subscriptions[0]; s.State != host.SubscriptionDown || !strings.Contains(s.Reason, "no permission") {
		t.Errorf("the subscription is %+v", s)
	}
	if h.Ready || h.State != host.StateStopped || !strings.Contains(h.Reason, "no permission") {
		t.Errorf("the host is %+v", h)
	}
}
