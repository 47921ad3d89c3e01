// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A host that loses an endpoint for good stops and says which; a service ends
// then, and whoever runs it starts it again.
func ExampleEndpointError() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		b.Break("orders", &core.Fault{Code: core.FaultDenied, Message: "the password was changed"})
		return nil
	})

	b.Deliver("orders", hosttest.Text("bread"))
	var lost *host.EndpointError
	if err := h.Run(context.Background()); errors.As(err, &lost) {
		fmt.Printf("%s, subscription %s: %v\n", lost.Endpoint, lost.Subscription, lost.Err)
	}
	// Output: shop, subscription orders: the password was changed
}
