// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Pause stops a subscription from beginning anything, from anywhere and at any
// time, before the start as well; Resume lets it go on. Messages stay where they
// are meanwhile.
func ExampleSubscription_Pause() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	orders := shop.Subscription("orders")
	host.Handle(orders, func(_ context.Context, m *host.Message[[]byte]) error {
		fmt.Printf("baked %s\n", m.Value)
		return nil
	})

	orders.Pause()
	b.Deliver("orders", hosttest.Text("bread"))
	b.CatchUp()
	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready:", h.Ready(), "paused:", orders.Paused())
	orders.Resume()
	limit := time.Now().Add(10 * time.Second)
	for h.Health().State == host.StateServing && time.Now().Before(limit) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(stop())
	// Output:
	// ready: true paused: true
	// baked bread
	// <nil>
}
