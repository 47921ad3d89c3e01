// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// windowBytes is what a host would have in work.
const windowBytes = 8 << 20

// connect connects our transport as the SDK does.
func (c *client) connect(ctx context.Context, u pluginapi.Usage) (pluginapi.Conn, error) {
	b, err := json.Marshal(settings.Settings{URL: settings.URL(c.url), Batching: c.batched})
	if err != nil {
		return nil, err
	}
	endpoint, err := pulsar.New().Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(b), Endpoint: "bench", Generation: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	for _, r := range endpoint.Inspect(u).Registrations {
		if len(r.Findings) > 0 {
			return nil, fmt.Errorf("inspect: %v", r.Findings)
		}
	}
	return endpoint.Connect(ctx, nil)
}

// longshoreSubscribes receives and acks what there is.
func (c *client) longshoreSubscribes(ctx context.Context, connected func(), _ <-chan order) error {
	options, err := pluginapi.EncodeOptions(settings.SubscribeOptions{Subscription: c.id, InitialPosition: settings.PositionEarliest})
	if err != nil {
		return err
	}
	r := pluginapi.Registration{Name: c.topic, Options: options}
	conn, err := c.connect(ctx, pluginapi.Usage{Registrations: []pluginapi.Registration{r}})
	if err != nil {
		return err
	}
	s, err := conn.Subscribe(ctx, r)
	if err != nil {
		return err
	}
	connected()
	var verdicts []pluginapi.Verdict
	for {
		b, err := s.Receive(ctx, pluginapi.Room{Messages: frame.MaxItems, Bytes: windowBytes})
		if err != nil {
			return err
		}
		if n := len(b.Deliveries); n > 0 {
			c.arrived.Add(n, b.Deliveries[0].Message.Payload)
		}
		if verdicts = verdicts[:0]; len(b.Deliveries) > 0 {
			for i := range b.Deliveries {
				verdicts = append(verdicts, pluginapi.Verdict{Handle: b.Deliveries[i].Handle, Kind: core.VerdictAck})
			}
			s.Settle(ctx, verdicts)
		}
		if b.Memory != nil {
			b.Memory.Release()
		}
	}
}

// longshorePublishes publishes with a window of receipts.
func (c *client) longshorePublishes(ctx context.Context, connected func(), orders <-chan order) error {
	target := pluginapi.Target{Name: c.topic, Purpose: pluginapi.PurposeApplication}
	conn, err := c.connect(ctx, pluginapi.Usage{Destinations: []pluginapi.Target{target}})
	if err != nil {
		return err
	}
	connected()
	room := make(chan struct{}, inFlight)
	var failed atomic.Pointer[core.Fault]
	done := func(_ int, r pluginapi.Receipt) {
		if r.Status != pluginapi.ReceiptConfirmed {
			failed.Store(r.Fault)
		}
		c.arrived.Add(1, nil)
		<-room
	}
	batch := make([]pluginapi.Outgoing, frame.MaxItems)
	for i := range batch {
		batch[i] = pluginapi.Outgoing{Message: c.messages[i%len(c.messages)], Purpose: pluginapi.PurposeApplication}
	}
	for o := range orders {
		c.arrived.Add(0, nil) // begins
		for left := o.messages; left > 0; {
			n := min(left, len(batch))
			for range n {
				room <- struct{}{}
			}
			if conn.Publish(ctx, batch[:n], done); failed.Load() != nil {
				return failed.Load()
			}
			left -= n
		}
	}
	return nil
}
