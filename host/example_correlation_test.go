// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/host/middleware"
)

// The correlation id of a message goes on to what its handler publishes.
func ExampleMiddleware_correlationID() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(),
		host.WithDefaults(host.Middleware(middleware.CorrelationID())),
		host.WithPublishMiddleware(middleware.PublishCorrelationID()))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	news := host.To[string](h, shop.To("news"))
	host.Handle(shop.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
		_, err := news.Publish(ctx, "bread was sold")
		return err
	})

	b.Deliver("orders", hosttest.Text("bread").With("correlation-id", "order-7"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Published("news")[0].Header("correlation-id"))
	// Output: order-7
}
