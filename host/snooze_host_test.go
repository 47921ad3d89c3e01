// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A delivery that is put off is the same attempt each time, up to the bounds of
// SnoozeLimit; then it is retried later, and counted. A host whose sources have
// caught up waits for all of that.
func TestSnoozeThroughTheHost(t *testing.T) {
	for name, batch := range map[string]bool{"one by one": false, "batch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				h := host.New(b.Replace(), hosttest.Logger(t))
				orders := h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders")
				began := time.Now()
				var runs []string
				handle := func(_ context.Context, m *host.Message[[]byte]) error {
					runs = append(runs, fmt.Sprintf("%v %s: attempt %d, put off %d, last %v",
						time.Since(began).Round(time.Second), m.Value, m.Attempt(), m.Snoozes(), m.Last()))
					if m.Attempt() == 1 {
						return fmt.Errorf("ship: %w", host.Snooze(time.Minute, errors.New("the gate is shut")))
					}
					return nil
				}
				rules := []host.Rule{host.MaxAttempts(3), host.SnoozeLimit(2, time.Hour)}
				if batch {
					host.HandleBatch(orders, 2, time.Second, func(ctx context.Context, ms []*host.Message[[]byte]) (errs []error) {
						for _, m := range ms {
							errs = append(errs, handle(ctx, m))
						}
						return errs
					}, rules...)
				} else {
					host.Handle(orders, handle, rules...)
				}
				b.Deliver("orders", hosttest.Text("a"), hosttest.Text("b"))
				b.CatchUp()
				s := hosttest.Start(t, h, b)
				time.Sleep(30 * time.Second)
				if c := h.Health().Endpoints[0].Subscriptions[0].Counters; c.InWork != 2 || c.Received != 2 {
					t.Errorf("counters %+v, want two in work: they are put off", c)
				}
				if err := s.Ended(); err != nil {
					t.Error(err)
				}
				want := []string{
					"0s a: attempt 1, put off 0, last false", "0s b: attempt 1, put off 0, last false",
					"1m0s a: attempt 1, put off 1, last false", "1m0s b: attempt 1, put off 1, last false",
					"2m0s a: attempt 1, put off 2, last false", "2m0s b: attempt 1, put off 2, last false",
					"3m0s a: attempt 2, put off 0, last false", "3m0s b: attempt 2, put off 0, last false",
				}
				if diff := cmp.Diff(want, runs); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if got, want := fmt.Sprint(b.Verdicts("orders")), "[1 ack 2 ack 3 ack 4 ack]"; got != want {
					t.Errorf("verdicts %v, want %v: two copies", got, want)
				}
			})
		})
	}
}

// What is put off when its plugin dies comes back by itself, as the same attempt
// with no snoozes, and is not handled a second time by the host.
func TestSnoozeOverACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace(), hosttest.Logger(t))
		began := time.Now()
		var runs []string
		host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			runs = append(runs, fmt.Sprintf("%v %s: attempt %d, put off %d",
				time.Since(began).Round(time.Second), m.Value, m.Attempt(), m.Snoozes()))
			if m.Snoozes() < 1 {
				return host.Snooze(time.Minute, nil)
			}
			return nil
		}, host.Workers(2), host.ByKeyFunc(func(core.Message) string { return "one" }))
		s := hosttest.Start(t, h, b)
		b.Deliver("orders", hosttest.Text("a"), hosttest.Text("b"))
		time.Sleep(30 * time.Second)
		b.Crash(t, "in")
		s.Ready()
		s.Wait()
		want := []string{
			"0s a: attempt 1, put off 0", "0s b: attempt 1, put off 0",
			"30s a: attempt 1, put off 0", "30s b: attempt 1, put off 0",
			"1m30s a: attempt 1, put off 1", "1m30s b: attempt 1, put off 1",
		}
		if diff := cmp.Diff(want, runs); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		if c := h.Health().Endpoints[0].Subscriptions[0].Counters; c.Stale != 2 || c.Acked != 2 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
	})
}
