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

// Backoff makes a plain retry one that waits. What waits costs no worker; on a
// source that counts and delays by itself, as here, it waits there.
func ExampleBackoff() {
	b := hosttest.NewBroker()
	b.Source("orders", hosttest.CountingTopic())
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	tries := 0
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		if tries++; tries < 5 {
			return errors.New("the till is busy")
		}
		return nil
	}, host.Backoff(host.Exponential(time.Millisecond, 4*time.Millisecond).Jitter(0)))

	b.Deliver("orders", hosttest.Text("three loaves"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, v := range b.Verdicts("orders") {
		fmt.Println(v)
	}
	// Output:
	// 1 requeue after 1ms
	// 1 requeue after 2ms, attempt 2
	// 1 requeue after 4ms, attempt 3
	// 1 requeue after 4ms, attempt 4
	// 1 ack, attempt 5
}
