// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// Explain says what every outcome leads to, before anything is connected. Brief
// is its short form; String also says what each crash would lose.
func ExampleHost_Explain() {
	b := hosttest.NewBroker()
	b.Source("orders", hosttest.CountingQueue())
	h := host.New(b.Replace(), quiet())
	shop := h.Endpoint("shop", host.Plugin{Name: "pulsar"}, nil)
	host.Handle(shop.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		return nil
	}, host.MaxAttempts(3), host.DeadLetterTo(shop.To("orders/dead")))

	tables, err := h.Explain(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range tables[0].Profiles[0].Rows {
		if row.Outcome == "ack" || row.Outcome == "retry" {
			fmt.Printf("%s, %s: %s\n", row.Outcome, row.Attempt, row.Plan)
		}
	}
	// Output:
	// ack, any: ACK
	// retry, first, below cap: REQUEUE
	// retry, at cap: WARN(L-CAP-DL); PUBLISH(orders/dead@shop,n); ACK
}
