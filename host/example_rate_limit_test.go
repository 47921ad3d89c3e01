// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// RateLimit bounds how often a handler is begun; messages wait for their turn
// with the transport.
func ExampleRateLimit() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	began := time.Now()
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		return nil
	}, host.RateLimit(100, 1)) // one every 10 ms

	for range 6 {
		b.Deliver("orders", hosttest.Text("bread"))
	}
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("at least 50 ms:", time.Since(began) >= 50*time.Millisecond)
	// Output: at least 50 ms: true
}
