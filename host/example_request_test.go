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

// Request sends a message and waits for its reply, where the transport knows
// requests.
func ExampleRequest() {
	type question struct{ From, To string }
	type answer struct{ Rate float64 }
	b := hosttest.NewBroker()
	b.Respond("rates", func(m hosttest.Message) hosttest.Message {
		return hosttest.JSON(answer{1.25}).With("correlation-id", m.Header("correlation-id"))
	})
	h := host.New(b.Replace(), quiet())
	bank := h.Endpoint("bank", host.Plugin{Name: "zmq"}, nil)

	stop, err := hosttest.Serve(h)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	got, err := host.Request[question, answer](ctx, h, bank.To("rates"), question{"EUR", "USD"}, host.WithTimeout(5*time.Second))
	fmt.Println(got.Rate, err)

	_, err = host.Request[question, answer](ctx, h, bank.To("weather"), question{})
	var failed *host.RequestError
	if errors.As(err, &failed) {
		fmt.Println(failed.To, "does not answer; maybe sent:", failed.MaybeSent)
	}
	fmt.Println(stop())
	// Output:
	// 1.25 <nil>
	// weather@bank does not answer; maybe sent: false
	// <nil>
}
