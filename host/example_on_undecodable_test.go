// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// What cannot be decoded is dropped with a warning, unless OnUndecodable says
// otherwise. The handler does not see it.
func ExampleOnUndecodable() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	type order struct{ Loaves int }
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[order]) error {
		fmt.Println("baked", m.Value.Loaves)
		return nil
	}, host.OnUndecodable(host.AsDeadLetter), host.DeadLetterTo(shop.To("orders/dead")))

	b.Deliver("orders", hosttest.Text("three loaves, please"), hosttest.JSON(order{3}))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("unread:", b.Published("orders/dead")[0].Text())
	// Output:
	// baked 3
	// unread: three loaves, please
}
