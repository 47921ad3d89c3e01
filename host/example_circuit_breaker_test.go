// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// CircuitBreaker stops intake while too much fails, so that an outage does not
// use up the attempts of every message; after a pause it probes.
func ExampleCircuitBreaker() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	var calls atomic.Int64
	var down atomic.Bool
	down.Store(true)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		if calls.Add(1); down.Load() {
			return errors.New("the till is down")
		}
		return nil
	}, host.MaxAttempts(3), host.CircuitBreaker(host.Circuit{Of: 2, Share: 1, Pause: 50 * time.Millisecond}))

	for range 10 {
		b.Deliver("orders", hosttest.Text("bread"))
	}
	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	health := func() host.SubscriptionHealth { return h.Health().Endpoints[0].Subscriptions[0] }
	limit := time.Now().Add(10 * time.Second)
	for health().State != host.SubscriptionTripped && time.Now().Before(limit) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(calls.Load(), "calls, then a pause:", health().State)
	down.Store(false)
	for health().Counters.Acked < 10 && time.Now().Before(limit) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(stop(), health().Counters.Acked, "acked")
	// Output:
	// 2 calls, then a pause: tripped
	// <nil> 10 acked
}
