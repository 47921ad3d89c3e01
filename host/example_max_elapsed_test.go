// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// MaxElapsed gives up by time, beside the number of attempts or in its place.
func ExampleMaxElapsed() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		return errors.New("the till is busy")
	}, host.MaxElapsed(20*time.Millisecond), host.Backoff(host.Constant(15*time.Millisecond).Jitter(0)),
		host.DeadLetterTo(shop.To("orders/dead")))

	b.Deliver("orders", hosttest.Text("bread"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	dead := b.Published("orders/dead")[0]
	first, err := time.Parse(time.RFC3339, dead.Header("x-longshore-first-failure"))
	fmt.Println(dead.Text(), "failed first on a day of", first.Year() >= 2025, err)
	// Output: bread failed first on a day of true <nil>
}
