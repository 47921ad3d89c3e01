// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Timeout ends the context of a handler; what it returns then decides as ever.
func ExampleTimeout() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
		select {
		case <-time.After(time.Minute):
			return nil
		case <-ctx.Done():
			return host.Drop(ctx.Err())
		}
	}, host.Timeout(5*time.Millisecond))

	b.Deliver("orders", hosttest.Text("a wedding cake"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Verdicts("orders"))
	// Output: [1 reject]
}
