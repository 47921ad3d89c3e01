// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// OnError says what errors mean, by errors.Is and errors.As: the handler returns
// what it got.
func ExampleOnError() {
	errNoStock, errClosed := errors.New("no stock"), errors.New("closed")
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[string]) error {
		switch m.Value {
		case "bread":
			return fmt.Errorf("order %s: %w", m.Value, errNoStock)
		case "milk":
			return errClosed
		}
		_, err := strconv.Atoi(m.Value)
		return err
	}, host.MaxAttempts(3), host.DeadLetterTo(shop.To("orders/dead")),
		host.OnError(host.Is(errNoStock), host.AsDrop),
		host.OnError(host.As[*strconv.NumError](), host.NeverRetry)) // every other error is a retry

	b.Deliver("orders", hosttest.JSON("bread"), hosttest.JSON("seven"), hosttest.JSON("milk"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, m := range b.Published("orders/dead") {
		fmt.Println(m.Text(), "after", m.Header("x-longshore-attempts"), "attempts:", m.Header("x-longshore-reason"))
	}
	// Output:
	// "seven" after 1 attempts: strconv.Atoi: parsing "seven": invalid syntax
	// "milk" after 3 attempts: closed
}
