// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// printed is a Tracer that prints.
type printed struct{}

func (printed) StartHandling(ctx context.Context, m host.Incoming) (context.Context, func(error)) {
	fmt.Println("begin of", m.Subscription(), "in trace", m.Header("traceparent"))
	return ctx, func(err error) { fmt.Println("end:", err) }
}

func (printed) StartPublishing(ctx context.Context, o *host.Outgoing) (context.Context, func(error)) {
	o.SetHeader("traceparent", "01")
	return ctx, func(error) {}
}

// WithTracer makes spans of handlers and of publishes. Headers carry the trace.
func ExampleWithTracer() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithTracer(printed{}))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	news := host.To[string](h, shop.To("news"))
	host.Handle(shop.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
		_, err := news.Publish(ctx, "bread was sold")
		return err
	})

	b.Deliver("orders", hosttest.Text("bread").With("traceparent", "00"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("published in trace", b.Published("news")[0].Header("traceparent"))
	// Output:
	// begin of orders in trace 00
	// end: <nil>
	// published in trace 01
}
