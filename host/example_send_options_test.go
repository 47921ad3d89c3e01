// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Options of one message: headers, an id by which its destination drops doubles,
// a delay that the destination carries out, and a limit of time.
func ExampleSendOption() {
	b := hosttest.NewBroker()
	able := hosttest.Stored()
	able.Dedups, able.MaxDelay = true, time.Hour
	b.Destination("reminders", able)
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	reminders := host.To[[]byte](h, shop.To("reminders"))

	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		_, err := reminders.Publish(context.Background(), []byte("fetch the bread"),
			host.WithHeader("tenant", "north"), host.WithContentType("text/plain"),
			host.WithDedupID("bread-7"), host.WithDelay(time.Minute), host.WithTimeout(5*time.Second))
		if err != nil {
			fmt.Println(err)
		}
	}
	if _, err := reminders.Publish(context.Background(), nil, host.WithDelay(2*time.Hour)); err != nil {
		fmt.Println("too long a delay is refused before anything is sent")
	}
	for _, m := range b.Published("reminders") {
		fmt.Println(m.Text(), m.Header("tenant"), m.Header("content-type"), m.Delay)
	}
	fmt.Println(stop())
	// Output:
	// too long a delay is refused before anything is sent
	// fetch the bread north text/plain 1m0s
	// <nil>
}
