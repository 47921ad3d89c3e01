// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// What a log takes back is delivered again, and acked then.
func TestLogGoesOnAfterItTookBack(t *testing.T) {
	for name, takes := range map[string]func(t *testing.T, b *hosttest.Broker){
		"disconnect": func(t *testing.T, b *hosttest.Broker) { t.Helper(); b.Disconnect(t, "in") },
		"crash":      func(t *testing.T, b *hosttest.Broker) { t.Helper(); b.Crash(t, "in") },
		"take back":  func(_ *testing.T, b *hosttest.Broker) { b.TakeBack("orders") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := hosttest.NewBroker()
				b.Source("orders", hosttest.Log())
				h := host.New(b.Replace(), hosttest.Logger(t))
				in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
					time.Sleep(time.Second)
					return nil
				}, host.Workers(2), host.RetryTo(in.To("again")))
				s := hosttest.Start(t, h, b)
				b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"), hosttest.Text("3"), hosttest.Text("4"))
				time.Sleep(1500 * time.Millisecond)
				takes(t, b)
				s.Ready()
				s.Wait()
			})
		})
	}
}

// A stream has caught up when what it has delivered was handled: until then it
// may come back as a copy, for which there is no credit yet.
func TestStreamCatchesUpWithItsCopies(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			b := hosttest.NewBroker()
			b.Source("orders", hosttest.Stream())
			h := host.New(b.Replace(), host.WithLogger(slog.New(slog.DiscardHandler)))
			runs := 0
			orders := h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders", host.Window(1, 0))
			host.Handle(orders, func(context.Context, *host.Message[[]byte]) error {
				runs++
				return errors.New("no")
			}, host.MaxAttempts(5))
			b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"))
			b.CatchUp()
			if err := hosttest.Start(t, h, b).Ended(); err != nil {
				t.Fatal(err)
			}
			if runs != 10 {
				t.Fatalf("%d runs, want 10", runs)
			}
		})
	}
}
