// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/host/middleware"
)

// Package middleware has ready ones: here a message that comes twice under one id
// is handled once.
func ExampleMiddleware_deduplicate() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		fmt.Printf("baked %s\n", m.Value)
		return nil
	}, host.Middleware(middleware.Deduplicate("message-id", 1000, time.Hour)))

	b.Double("orders", 1) // the transport delivers the first one twice
	b.Deliver("orders", hosttest.Text("bread").With("message-id", "7"), hosttest.Text("rolls").With("message-id", "8"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Verdicts("orders"))
	// Output:
	// baked bread
	// baked rolls
	// [1 ack 1 ack 2 ack]
}
