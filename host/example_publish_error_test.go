// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// A publish that fails says whether it may have been sent all the same: sending
// it again may double it then.
func ExamplePublishError() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	news := host.To[string](h, shop.To("news"))

	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, how := range []hosttest.PublishFailure{hosttest.Refused, hosttest.Unanswered} {
		b.FailPublishes("news", how, 1)
		_, err := news.Publish(context.Background(), "fresh bread")
		var failed *host.PublishError
		if errors.As(err, &failed) {
			fmt.Println("to", failed.To, "maybe sent:", failed.MaybeSent)
		}
	}
	fmt.Println(stop())
	_, err = news.Publish(context.Background(), "too late")
	fmt.Println("nothing was sent:", errors.Is(err, host.ErrEndpointDown))
	// Output:
	// to news@shop maybe sent: false
	// to news@shop maybe sent: true
	// <nil>
	// nothing was sent: true
}
