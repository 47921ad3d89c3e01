// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// An Optional endpoint does not keep a host from starting or running: the host
// serves without it, and is not ready until it is there.
func ExamplePlugin_optional() {
	orders, news := hosttest.NewBroker(), hosttest.NewBroker()
	h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"orders": orders, "news": news}), quiet())
	in := h.Endpoint("orders", host.Plugin{Name: "pulsar"}, nil)
	h.Endpoint("news", host.Plugin{Name: "mqtt", Optional: true}, nil)
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		health := h.Health()
		fmt.Printf("baked %s; %s, ready: %v\n", m.Value, health.State, health.Ready)
		return nil
	})

	news.Down()
	orders.Deliver("orders", hosttest.Text("bread"))
	orders.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: baked bread; serving, ready: false
}
