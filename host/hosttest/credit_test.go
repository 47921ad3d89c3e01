// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// What is published to a subscription that takes nothing has its receipt all the
// same, the copies of its own retries included.
func TestReceiptsDoNotWaitForCredit(t *testing.T) {
	withheld := map[string]func(sub *host.Subscription, first bool) error{
		"paused": func(sub *host.Subscription, first bool) error {
			if first {
				sub.Pause()
				return errors.New("no")
			}
			return nil
		},
		"tripped": func(_ *host.Subscription, first bool) error {
			if first {
				return errors.New("no")
			}
			return nil
		},
	}
	for name, handle := range withheld {
		for kind, source := range map[string]core.Capabilities{"queue": hosttest.Queue(), "stream": hosttest.Stream()} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := hosttest.NewBroker()
					b.Source("x", source)
					h := host.New(b.Replace(), hosttest.Logger(t))
					e := h.Endpoint("shop", host.Plugin{Name: "pipe"}, nil)
					sub, own := e.Subscription("x"), host.To[string](h, e.To("x"))
					rules := []host.Rule{host.MaxAttempts(3)}
					if name == "tripped" {
						rules = append(rules, host.CircuitBreaker(host.Circuit{Of: 1, Pause: time.Hour}))
					}
					runs := 0
					host.Handle(sub, func(context.Context, *host.Message[[]byte]) error {
						runs++
						return handle(sub, runs == 1)
					}, rules...)
					s := hosttest.Start(t, h, b)
					b.Deliver("x", hosttest.Text(`"1"`))
					time.Sleep(time.Second)
					c := h.Health().Endpoints[0]
					if c.Published.Missing != 0 || c.Subscriptions[0].Counters.Retried != 1 {
						t.Errorf("missing receipts %d, counters %+v; want a retry that is over", c.Published.Missing, c.Subscriptions[0].Counters)
					}
					if _, err := own.Publish(t.Context(), "2", host.WithTimeout(10*time.Second)); err != nil {
						t.Error(err)
					}
					if runs != 1 {
						t.Errorf("%d runs without credit", runs)
					}
					sub.Resume()
					s.Wait()
					if runs != 3 {
						t.Errorf("%d runs, want the copy and the message that were published too", runs)
					}
				})
			})
		}
	}
}

// A handler that publishes to its own subscription has a receipt whatever the
// window, and a host whose sources have caught up does not end before it has
// handled what it published.
func TestReceiptsWithinAHandler(t *testing.T) {
	for kind, source := range map[string]core.Capabilities{"queue": hosttest.Queue(), "stream": hosttest.Stream()} {
		for _, window := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(kind, " ", window), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := hosttest.NewBroker()
					b.Source("x", source)
					h := host.New(b.Replace(), hosttest.Logger(t))
					e := h.Endpoint("shop", host.Plugin{Name: "pipe"}, nil)
					own := host.To[order](h, e.To("x"))
					var got []int
					host.Handle(e.Subscription("x", host.Window(window, 0)), func(ctx context.Context, m *host.Message[order]) error {
						got = append(got, m.Value.ID)
						if m.Value.ID > 1 {
							return nil
						}
						time.Sleep(time.Minute)
						_, err := own.Publish(ctx, order{2}, host.WithTimeout(10*time.Second))
						return err
					})
					b.Deliver("x", hosttest.JSON(order{1}))
					b.CatchUp()
					if err := hosttest.Start(t, h, b).Ended(); err != nil {
						t.Error(err)
					}
					if fmt.Sprint(got) != "[1 2]" {
						t.Errorf("handled %v", got)
					}
				})
			})
		}
	}
}
