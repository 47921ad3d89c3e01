// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// AfterSettle is told what became of each delivery, retries included, once its
// settlement is over: for metrics of one's own, and for what must not happen
// before the ack.
func ExampleAfterSettle() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if string(m.Value) == "milk" {
			return host.Drop(errors.New("this is a bakery"))
		}
		return nil
	}, host.AfterSettle(func(_ context.Context, s host.Settled) {
		fmt.Printf("%s %s\n", s.Message.Payload, s.Result)
	}))

	b.Deliver("orders", hosttest.Text("bread"), hosttest.Text("milk"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bread acked
	// milk dropped
}
