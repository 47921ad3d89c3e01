// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A stop waits for handlers and waiting copies as long as the drain limit
// allows. What it cut off is listed.
func ExampleWithDrainLimit() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithDrainLimit(20*time.Millisecond))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	begun, release := make(chan bool), make(chan bool)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		begun <- true
		<-release // it does not look at its context
		return nil
	})

	b.Deliver("orders", hosttest.Text("a wedding cake"))
	ctx, signal := context.WithCancel(context.Background())
	go func() {
		<-begun
		signal()
	}()
	err := h.Run(ctx)
	close(release)
	var cut *host.AbandonedError
	if errors.As(err, &cut) {
		for _, s := range cut.Subscriptions {
			fmt.Printf("%s: %d handler did not return\n", s.Subscription, s.Handlers)
		}
	}
	// Output: orders: 1 handler did not return
}
