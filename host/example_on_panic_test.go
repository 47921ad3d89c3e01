// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A panic is contained: it is logged with its stack, and is a retry unless
// OnPanic says otherwise. The dead letter tells of it.
func ExampleOnPanic() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		var shelves []string
		fmt.Println(shelves[0])
		return nil
	}, host.OnPanic(host.AsDeadLetter), host.DeadLetterTo(shop.To("orders/dead")))

	b.Deliver("orders", hosttest.Text("bread"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	dead := b.Published("orders/dead")[0]
	fmt.Println(dead.Header("x-longshore-reason"))
	fmt.Println("with its stack:", dead.Header("x-longshore-stack") != "")
	// Output:
	// handler panicked: runtime error: index out of range [0] with length 0
	// with its stack: true
}
