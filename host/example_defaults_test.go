// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// WithDefaults holds for every subscription of the host, Endpoint.Defaults for
// those of one endpoint; a registration says otherwise by the same rule.
func ExampleWithDefaults() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithDefaults(host.MaxAttempts(3)))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	shop.Defaults(host.DeadLetterTo(shop.To("dead")))
	fails := func(_ context.Context, m *host.Message[[]byte]) error {
		return errors.New("no")
	}
	host.Handle(shop.Subscription("orders"), fails)
	host.Handle(shop.Subscription("payments"), fails, host.MaxAttempts(1))

	b.Deliver("orders", hosttest.Text("bread"))
	b.Deliver("payments", hosttest.Text("2.50"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	var dead []string
	for _, m := range b.Published("dead") {
		dead = append(dead, fmt.Sprintf("%s after %s", m.Text(), m.Header("x-longshore-attempts")))
	}
	slices.Sort(dead)
	fmt.Println(dead)
	// Output: [2.50 after 1 bread after 3]
}
