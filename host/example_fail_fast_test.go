// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// FailFast stops the host at a failure that should be looked at first. The
// delivery stays with its source.
func ExampleHandlerError() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		panic("the books do not add up")
	}, host.OnPanic(host.FailFast))

	b.Deliver("orders", hosttest.Text("bread"))
	var failed *host.HandlerError
	var thrown *host.PanicError
	if err := h.Run(context.Background()); errors.As(err, &failed) && errors.As(err, &thrown) {
		fmt.Printf("%s: %v\n", failed.Subscription, thrown.Value)
	}
	fmt.Println(b.Verdicts("orders"))
	// Output:
	// orders: the books do not add up
	// [1 release]
}
