// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// PublishAsync waits for room alone, so a publisher is not bound by round trips.
// OrderedReceipts makes the receipts come in order.
func ExamplePublisher_PublishAsync() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	news := host.To[int](h, shop.To("news"), host.InFlight(16, 1<<20), host.OrderedReceipts())

	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	var last *host.Pending
	for i := range 100 {
		if last, err = news.PublishAsync(ctx, i); err != nil {
			fmt.Println(err)
		}
	}
	_, err = last.Receipt(ctx) // and all before it have theirs
	fmt.Println(len(b.Published("news")), "stored,", err)
	fmt.Println(stop())
	// Output:
	// 100 stored, <nil>
	// <nil>
}
