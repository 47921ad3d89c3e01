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

// HandleBatch gives the handler several messages at a time: a slice of errors
// settles each by itself, nil acks all.
func ExampleHandleBatch() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.HandleBatch(shop.Subscription("orders"), 3, 10*time.Millisecond, func(_ context.Context, ms []*host.Message[string]) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			if m.Value == "milk" {
				errs[i] = host.Drop(errors.New("this is a bakery"))
			}
		}
		fmt.Println("a batch of", len(ms))
		return errs
	})

	b.Deliver("orders", hosttest.JSON("bread"), hosttest.JSON("milk"), hosttest.JSON("rolls"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(b.Verdicts("orders"))
	// Output:
	// a batch of 3
	// [1 ack 2 reject 3 ack]
}
