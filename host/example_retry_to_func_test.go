// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// RetryToFunc says for each message where its copy goes: here what fails for one
// tenant waits in a queue of that tenant's own.
func ExampleRetryToFunc() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		return fmt.Errorf("no stock for %s", m.Value)
	}, host.MaxAttempts(5), host.RetryToFunc(func(m core.Message, attempt uint64) (core.Destination, error) {
		tenant, _ := m.Headers.Get("tenant")
		return shop.To(fmt.Sprintf("orders/%s/again", tenant)), nil
	}))

	b.Deliver("orders", hosttest.Text("bread").With("tenant", "north"), hosttest.Text("milk").With("tenant", "south"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Published("orders/north/again"), b.Published("orders/south/again"))
	// Output: ["bread"] ["milk"]
}
