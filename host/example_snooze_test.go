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

// Snooze puts a delivery off without counting it: what comes too early does not
// use up its attempts.
func ExampleSnooze() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if m.Snoozes() < 3 {
			return host.Snooze(time.Millisecond, errors.New("the oven is cold"))
		}
		fmt.Printf("baked %s at attempt %d\n", m.Value, m.Attempt())
		return nil
	}, host.MaxAttempts(1))

	b.Deliver("orders", hosttest.Text("bread"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Verdicts("orders"))
	// Output:
	// baked bread at attempt 1
	// [1 ack]
}
