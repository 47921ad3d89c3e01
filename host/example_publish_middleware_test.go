// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Middleware for publishing sees every message that the service itself sends,
// encoded, and may change it.
func ExampleWithPublishMiddleware() {
	stamp := func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) {
			o.SetHeader("sent-by", "bakery")
			return next(ctx, o)
		}
	}
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithPublishMiddleware(stamp))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	news := host.To[string](h, shop.To("news"))

	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := news.Publish(context.Background(), "fresh bread"); err != nil {
		fmt.Println(err)
	}
	if err := stop(); err != nil {
		fmt.Println(err)
	}
	m := b.Published("news")[0]
	fmt.Println(m.Text(), "by", m.Header("sent-by"))
	// Output: "fresh bread" by bakery
}
