// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Workers handles several deliveries at a time; with ByKey those of one key keep
// their order.
func ExampleByKey() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	var mu sync.Mutex
	seen := map[string][]string{}
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		mu.Lock()
		defer mu.Unlock()
		shop := m.Header("partition-key")
		seen[shop] = append(seen[shop], string(m.Value))
		return nil
	}, host.Workers(8), host.ByKey())

	for i := range 3 {
		for _, key := range []string{"north", "south"} {
			b.Deliver("orders", hosttest.Text(fmt.Sprint("order ", i+1)).With("partition-key", key))
		}
	}
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(seen["north"])
	fmt.Println(seen["south"])
	// Output:
	// [order 1 order 2 order 3]
	// [order 1 order 2 order 3]
}
