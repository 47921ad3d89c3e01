// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// HandleReply publishes what the handler returns before the request is acked: to
// the request's reply-to header, or where ReplyTo says.
func ExampleHandleReply() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	bank := h.Endpoint("bank", host.Plugin{Name: "mqtt"}, nil)
	type question struct{ From, To string }
	type answer struct{ Rate float64 }
	host.HandleReply(bank.Subscription("rates"), func(_ context.Context, m *host.Message[question]) (answer, error) {
		return answer{Rate: 1.25}, nil
	}, host.ReplyTo(bank.To("rates/answers")))

	ask := hosttest.JSON(question{"EUR", "USD"}).With("correlation-id", "42")
	b.Deliver("rates", ask, ask.With("reply-to", "desk/7"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, name := range []string{"rates/answers", "desk/7"} {
		for _, m := range b.Published(name) {
			fmt.Println(name, m.Text(), m.Header("correlation-id"))
		}
	}
	// Output:
	// rates/answers {"Rate":1.25} 42
	// desk/7 {"Rate":1.25} 42
}
