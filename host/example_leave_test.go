// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Leave says nothing: the delivery stays with its source, which gives it to
// somebody else when the connection ends, or a lease does.
func ExampleLeave() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	jobs := h.Endpoint("jobs", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(jobs.Subscription("print"), func(_ context.Context, m *host.Message[[]byte]) error {
		if string(m.Value) == "poster" {
			return host.Leave() // too large for this printer
		}
		return nil
	})

	b.Deliver("print", hosttest.Text("poster"), hosttest.Text("letter"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, v := range b.Verdicts("print") {
		fmt.Println(v.Message, v)
	}
	// Output:
	// "poster" 1 release
	// "letter" 2 ack
}
