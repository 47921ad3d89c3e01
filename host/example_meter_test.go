// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// counts is a Meter that counts.
type counts struct{ acked, retried, published atomic.Int64 }

func (c *counts) Handled(host.HandledEvent)          {}
func (c *counts) EndpointChanged(host.EndpointEvent) {}
func (c *counts) Published(host.PublishedEvent)      { c.published.Add(1) }

func (c *counts) Settled(e host.SettledEvent) {
	switch e.Result {
	case host.ResultAcked:
		c.acked.Add(1)
	case host.ResultRetried:
		c.retried.Add(1)
	}
}

// WithMeter is where metrics come from: small events, told in the midst of the
// work.
func ExampleWithMeter() {
	var c counts
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet(), host.WithMeter(&c))
	shop := h.Endpoint("shop", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if m.Attempt() == 1 {
			return errors.New("the till is busy")
		}
		return nil
	}, host.MaxAttempts(2), host.Forward(shop.To("shipped")))

	b.Deliver("orders", hosttest.Text("bread"), hosttest.Text("rolls"))
	b.CatchUp()
	if err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(c.acked.Load(), "acked,", c.retried.Load(), "retried,", c.published.Load(), "published")
	// Output: 2 acked, 2 retried, 4 published
}
