// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Forward publishes each message that was handled before it is acked: nothing is
// lost between the two. Replace changes what leaves.
func ExampleForward() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	in := h.Endpoint("in", host.Plugin{Name: "mqtt"}, nil)
	out := h.Endpoint("out", host.Plugin{Name: "pulsar"}, nil)
	host.Handle(in.Subscription("readings"), func(_ context.Context, m *host.Message[[]byte]) error {
		m.Replace([]byte(strings.ToUpper(string(m.Value))))
		return nil
	}, host.Forward(out.To("archive")))

	b.Deliver("readings", hosttest.Text("warm").With("sensor", "7"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, m := range b.Published("archive") {
		fmt.Println(m.Text(), "of sensor", m.Header("sensor"))
	}
	// Output: WARM of sensor 7
}
