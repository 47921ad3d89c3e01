// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// PublishWith holds messages back until the handler has succeeded: all of them
// leave before the ack, and none when it fails.
func ExamplePublisher_PublishWith() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	bills := host.To[string](h, shop.To("bills"))
	parcels := host.To[string](h, shop.To("parcels"))
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[string]) error {
		if err := bills.PublishWith(m, "bill for "+m.Value); err != nil {
			return err
		}
		if err := parcels.PublishWith(m, "parcel of "+m.Value); err != nil {
			return err
		}
		if m.Attempt() == 1 {
			return errors.New("the printer is out of paper") // and no bill leaves
		}
		return nil
	}, host.MaxAttempts(2), host.Publishes(bills, parcels))

	b.Deliver("orders", hosttest.JSON("bread"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Published("bills"), b.Published("parcels"))
	// Output: ["\"bill for bread\""] ["\"parcel of bread\""]
}
