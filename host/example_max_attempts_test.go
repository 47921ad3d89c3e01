// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// MaxAttempts caps the tries of a message, on every transport: where the
// transport does not count, copies carry the number. The last one fails into the
// dead letter, whose headers say why.
func ExampleMaxAttempts() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		fmt.Printf("attempt %d, the last: %v\n", m.Attempt(), m.Last())
		return errors.New("the till is broken")
	}, host.MaxAttempts(3), host.DeadLetterTo(shop.To("orders/dead")))

	b.Deliver("orders", hosttest.Text("three loaves"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	dead := b.Published("orders/dead")[0]
	fmt.Printf("%s: %s, %s attempts on %s\n", dead.Text(), dead.Header("x-longshore-reason"),
		dead.Header("x-longshore-attempts"), dead.Header("x-longshore-subscription"))
	// Output:
	// attempt 1, the last: false
	// attempt 2, the last: false
	// attempt 3, the last: true
	// three loaves: the till is broken, 3 attempts on orders
}
