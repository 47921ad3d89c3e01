// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Health says what a host is at: what a health check answers, as JSON if need
// be. Ready is for those who send traffic.
func ExampleHost_Health() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error { return nil })

	show := func() {
		health := h.Health()
		fmt.Printf("%s, ready: %v\n", health.State, health.Ready)
		for _, e := range health.Endpoints {
			fmt.Printf("  %s is %s\n", e.Name, e.State)
		}
	}
	show()
	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	show()
	if err := stop(); err != nil {
		fmt.Println(err)
	}
	show()
	// Output:
	// new, ready: false
	// serving, ready: true
	//   shop is up
	// stopped, ready: false
	//   shop is stopped
}
