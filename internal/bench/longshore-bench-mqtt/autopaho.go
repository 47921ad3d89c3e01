// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/longshore-go/longshore/core"
)

// receiveMaximum is the default of our transport: as much is in flight by
// either.
const receiveMaximum = 1000

// keepAlive is that of our transport, in seconds.
const keepAlive = 60

// inFlight is how many publishes are under way: as many as a host has.
const inFlight = 1024

// config is autopaho's, with its defaults but for what our transport has as well.
func (c *client) config(buffered bool) autopaho.ClientConfig {
	config := autopaho.ClientConfig{
		ServerUrls: []*url.URL{{Scheme: "mqtt", Host: c.address}}, KeepAlive: keepAlive, CleanStartOnInitialConnection: true,
		ConnectPacketBuilder: func(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			most := uint16(receiveMaximum)
			p.Properties = &paho.ConnectProperties{ReceiveMaximum: &most}
			return p, nil
		},
		ClientConfig: paho.ClientConfig{ClientID: c.id},
	}
	if buffered {
		config.AttemptConnection = dialBuffered
	}
	return config
}

// autopahoSubscribes counts what its callback is given; acks follow by
// themselves.
func (c *client) autopahoSubscribes(buffered bool) role {
	return func(ctx context.Context, connected func(), _ <-chan order) error {
		config := c.config(buffered)
		config.OnPublishReceived = []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			c.arrived.Add(1, p.Packet.Payload)
			return true, nil
		}}
		manager, err := autopaho.NewConnection(ctx, config)
		if err != nil {
			return err
		}
		if err := manager.AwaitConnection(ctx); err != nil {
			return err
		}
		if _, err := manager.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: c.messages[0].Name, QoS: c.qos}}}); err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		connected()
		<-ctx.Done()
		return ctx.Err()
	}
}

// autopahoPublishes publishes at QoS 0 on one goroutine; at QoS 1 and 2, where
// Publish waits for the server, on as many as may be in flight.
func (c *client) autopahoPublishes(buffered bool) role {
	return func(ctx context.Context, connected func(), orders <-chan order) error {
		manager, err := autopaho.NewConnection(ctx, c.config(buffered))
		if err != nil {
			return err
		}
		if err := manager.AwaitConnection(ctx); err != nil {
			return err
		}
		connected()
		if c.qos == 0 {
			return c.each(ctx, orders, func(m *core.Message) error { return c.publish(ctx, manager, m) })
		}
		failed := make(chan error, inFlight)
		work := make(chan *core.Message)
		var publishers sync.WaitGroup
		for range inFlight {
			publishers.Go(func() {
				for m := range work {
					if err := c.publish(ctx, manager, m); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		defer publishers.Wait()
		defer close(work)
		return c.each(ctx, orders, func(m *core.Message) error {
			select {
			case work <- m:
				return nil
			case err := <-failed:
				return err
			}
		})
	}
}

// publish publishes a message and waits as autopaho does.
func (c *client) publish(ctx context.Context, manager *autopaho.ConnectionManager, m *core.Message) error {
	p := &paho.Publish{QoS: c.qos, Topic: m.Name, Payload: m.Payload}
	for _, h := range m.Headers {
		if p.Properties == nil {
			p.Properties = &paho.PublishProperties{}
		}
		if h.Name == "content-type" {
			p.Properties.ContentType = string(h.Value)
			continue
		}
		p.Properties.User.Add(h.Name, string(h.Value))
	}
	if _, err := manager.Publish(ctx, p); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	c.sent.Add(1)
	return nil
}
