// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// timed tells how handlers end, and of what.
func timed(next host.Next) host.Next {
	return func(ctx context.Context, m host.Incoming) error {
		err := next(ctx, m)
		fmt.Printf("%s of %s: %v\n", m.Payload(), m.Subscription(), err)
		return err
	}
}

// admit lets through what names a tenant.
func admit(next host.Next) host.Next {
	return func(ctx context.Context, m host.Incoming) error {
		if m.Header("tenant") == "" {
			return host.Drop(errors.New("no tenant"))
		}
		return next(ctx, m)
	}
}

// Middleware wraps the handler, the first one outermost; what it returns is the
// outcome.
func ExampleMiddleware() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		return nil
	}, host.Middleware(timed, admit))

	b.Deliver("orders", hosttest.Text("bread").With("tenant", "north"), hosttest.Text("milk"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bread of orders: <nil>
	// milk of orders: no tenant
}
