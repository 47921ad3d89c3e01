// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// OnFinalFailure is told of each message that was given up, once, with what
// became of it. It holds up no handler.
func ExampleOnFinalFailure() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		return errors.New("no flour")
	}, host.MaxAttempts(2), host.DeadLetterTo(shop.To("orders/dead")),
		host.OnFinalFailure(func(_ context.Context, f host.Failure) {
			fmt.Printf("%s: %v after %d attempts, kept in %s\n", f.Message.Payload, f.Err, f.Attempt, f.DeadLetter)
		}))

	b.Deliver("orders", hosttest.Text("bread"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: bread: no flour after 2 attempts, kept in orders/dead@shop
}
