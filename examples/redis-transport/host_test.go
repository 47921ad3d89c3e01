// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// bakery is a service in Go: the wiring of service.yaml.
func bakery(h *host.Host, address string) {
	shop := h.Endpoint("shop", host.Plugin{Name: "redis", InProcess: transport{}},
		map[string]any{"address": address, "group": "bakery", "hold": "10s"})
	host.Handle(shop.Subscription("orders", host.Options(map[string]any{"start": "beginning"})), func(_ context.Context, m *host.Message[[]byte]) error {
		if string(m.Value) == "no bread" {
			return errors.New("sold out")
		}
		return nil
	}, host.MaxAttempts(3), host.Backoff(host.Constant(50*time.Millisecond)), host.DeadLetterTo(shop.To("orders.dead")), host.Forward(shop.To("orders.done")))
}

// The service runs on a real server, the transport in the test's own process.
func TestBakeryOnRedis(t *testing.T) {
	s := startServer(t)
	h := host.New(hosttest.Logger(t))
	bakery(h, s.address())
	running := hosttest.Start(t, h)
	for _, order := range []string{"three loaves", "no bread"} {
		if err := s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "orders", Values: []string{"p", order, "h:shop", "north"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	done, dead := s.wait("orders.done"), s.wait("orders.dead")
	running.Wait()
	if done["p"] != "three loaves" || dead["p"] != "no bread" || dead["h:x-longshore-reason"] != "sold out" {
		t.Errorf("done %v, dead %v", done, dead)
	}
}

// The same wiring runs without a server: on a broker that can do what the
// transport says it can, where a lease of ten seconds passes at once.
func TestBakeryWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Source("orders", core.Capabilities{
			Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: 10 * time.Second, MaxHold: 10 * time.Second, Extend: true,
			Counts: core.CountNative, Address: hosttest.Own, Unsettled: core.UnsettledOnTimeout,
		})
		h := host.New(b.Replace(), hosttest.Logger(t))
		bakery(h, "nowhere")
		s := hosttest.Start(t, h, b)
		b.Lose("orders", 1) // a consumer died with it
		b.Deliver("orders", hosttest.Text("three loaves"), hosttest.Text("no bread"))
		s.Wait()
		if n := len(b.Published("orders.done")); n != 1 {
			t.Errorf("%d done", n)
		}
		if dead := b.Published("orders.dead"); len(dead) != 1 || dead[0].Header("x-longshore-attempts") != "3" {
			t.Errorf("dead letters %v", dead)
		}
	})
}
