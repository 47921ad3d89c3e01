// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A host does not end while one of its subscriptions is paused that had caught up
// before: what has come to its source since is handled after Resume.
func TestPausedHostDoesNotEnd(t *testing.T) {
	for name, before := range map[string]bool{"before Run": true, "after it had caught up": false} {
		for comes, more := range map[string]bool{"more comes": true, "nothing comes": false} {
			t.Run(name+", "+comes, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := hosttest.NewBroker()
					h := host.New(b.Replace(), hosttest.Logger(t))
					in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
					handled := 0
					shipped := in.Subscription("shipped")
					host.Handle(shipped, func(context.Context, *host.Message[[]byte]) error {
						handled++
						return nil
					})
					host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
						time.Sleep(time.Minute)
						if !more {
							return host.Drop(nil)
						}
						return nil
					}, host.Forward(in.To("shipped")))
					if before {
						shipped.Pause()
					}
					want := 0
					if more {
						want = 1
					}
					b.Deliver("orders", hosttest.Text("1"))
					b.CatchUp()
					s := hosttest.Start(t, h, b)
					synctest.Wait()
					shipped.Pause()
					time.Sleep(10 * time.Minute)
					if state := h.Health().State; state != host.StateServing {
						t.Errorf("the host is %s while a subscription is paused", state)
					}
					shipped.Resume()
					if err := s.Ended(); err != nil {
						t.Error(err)
					}
					if handled != want {
						t.Errorf("%d handled, want %d", handled, want)
					}
				})
			})
		}
	}
}

// The same holds for one whose circuit breaker is open: it has credit for nothing
// that comes meanwhile.
func TestTrippedHostDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(t))
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		handled := 0
		host.Handle(in.Subscription("shipped"), func(_ context.Context, m *host.Message[[]byte]) error {
			if handled++; handled == 1 {
				return errors.New("no")
			}
			return nil
		}, host.MaxAttempts(1), host.CircuitBreaker(host.Circuit{Of: 1, Pause: time.Hour, Longest: time.Hour}))
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			time.Sleep(time.Minute)
			return nil
		}, host.Forward(in.To("shipped")))
		b.Deliver("shipped", hosttest.Text("0"))
		b.Deliver("orders", hosttest.Text("1"))
		b.CatchUp()
		if err := hosttest.Start(t, h, b).Ended(); err != nil {
			t.Error(err)
		}
		if handled != 2 {
			t.Errorf("%d handled, want 2", handled)
		}
	})
}

// One whose source has ended is waited for as long as it has something: what it
// has read is handled after Resume.
func TestPausedHostWhoseSourceHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Source("orders", hosttest.Stream())
		h := host.New(b.Replace(), hosttest.Logger(t))
		handled := 0
		orders := h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders")
		host.Handle(orders, func(context.Context, *host.Message[[]byte]) error {
			handled++
			time.Sleep(time.Minute)
			return nil
		})
		b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"), hosttest.Text("3"))
		b.End("orders")
		s := hosttest.Start(t, h, b)
		orders.Pause()
		time.Sleep(time.Hour)
		if state := h.Health().State; state != host.StateServing || handled > 1 {
			t.Errorf("the host is %s, %d handled, want it to wait", state, handled)
		}
		orders.Resume()
		if err := s.Ended(); err != nil {
			t.Error(err)
		}
		if handled != 3 {
			t.Errorf("%d handled, want 3", handled)
		}
	})
}
