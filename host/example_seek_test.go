// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Seek has a source give again what it has given already. Here the prices are read
// once more after a handler has learned how.
func ExampleSubscription_Seek() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	market := h.Endpoint("market", host.Plugin{Name: "pulsar"}, nil)
	prices := market.Subscription("prices")
	handled := make(chan string)
	host.Handle(prices, func(_ context.Context, m *host.Message[string]) error {
		handled <- m.Value
		return nil
	})
	b.Deliver("prices", hosttest.JSON("wheat 210"), hosttest.JSON("barley 180"))

	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-handled)
	fmt.Println(<-handled)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := prices.Seek(ctx, host.Earliest()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("again:", <-handled)
	fmt.Println("again:", <-handled)
	fmt.Println(stop())
	// Output:
	// wheat 210
	// barley 180
	// again: wheat 210
	// again: barley 180
	// <nil>
}
