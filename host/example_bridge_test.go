// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// With Forward a subscription needs no handler: a bridge between two transports,
// with the retries and dead letters of any other subscription.
func ExampleForward_bridge() {
	mqtt, pulsar := hosttest.NewBroker(), hosttest.NewBroker()
	h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"mqtt": mqtt, "pulsar": pulsar}), quiet())
	from := h.Endpoint("mqtt", host.Plugin{Name: "mqtt"}, nil)
	to := h.Endpoint("pulsar", host.Plugin{Name: "pulsar"}, nil)
	host.Handle[[]byte](from.Subscription("readings"), nil, host.Forward(to.To("readings")))

	pulsar.FailPublishes("readings", hosttest.Unavailable, 2) // a retry each
	mqtt.Deliver("readings", hosttest.Text("warm"))
	mqtt.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(mqtt.Verdicts("readings"))
	fmt.Println(pulsar.Published("readings"))
	// Output:
	// [1 requeue 1 requeue, attempt 2 1 ack, attempt 3]
	// ["warm"]
}
