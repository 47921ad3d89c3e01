// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/longshore-go/longshore/core"
)

// inFlight is how many publishes are under way: as many as a host has.
const inFlight = 1024

// keep is the subscription that keeps what a topic is filled with.
const keep = "keep"

// batchDelay and batchMessages are our transport's.
const (
	batchDelay    = time.Millisecond
	batchMessages = 1000
)

// connectLibrary makes a client of the library that logs nothing.
func (c *client) connectLibrary() (pulsar.Client, error) {
	l, err := pulsar.NewClient(pulsar.ClientOptions{URL: c.url, Logger: pulsarlog.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return l, nil
}

// producer is one with the library's defaults: it batches.
func (c *client) producer() pulsar.ProducerOptions { return pulsar.ProducerOptions{Topic: c.topic} }

// sameProducer is one as our transport makes it.
func (c *client) sameProducer() pulsar.ProducerOptions {
	return pulsar.ProducerOptions{
		Topic: c.topic, DisableBatching: !c.batched, MaxPendingMessages: inFlight,
		BatchingMaxPublishDelay: batchDelay, BatchingMaxMessages: batchMessages,
	}
}

// fills publishes to a topic that keeps it.
func (c *client) fills(ctx context.Context, connected func(), orders <-chan order) error {
	l, err := c.connectLibrary()
	if err != nil {
		return err
	}
	s, err := l.Subscribe(pulsar.ConsumerOptions{Topic: c.topic, SubscriptionName: keep, Type: pulsar.Shared})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	s.Close()
	l.Close()
	return c.publishes(c.sameProducer())(ctx, connected, orders)
}

// publishes publishes with a window of receipts.
func (c *client) publishes(options pulsar.ProducerOptions) role {
	return func(ctx context.Context, connected func(), orders <-chan order) error {
		l, err := c.connectLibrary()
		if err != nil {
			return err
		}
		defer l.Close()
		p, err := l.CreateProducer(options)
		if err != nil {
			return fmt.Errorf("make a producer: %w", err)
		}
		connected()
		room, failed := make(chan struct{}, inFlight), make(chan error, 1)
		return c.each(ctx, orders, func(m *core.Message) error {
			select {
			case room <- struct{}{}:
			case err := <-failed:
				return err
			}
			p.SendAsync(ctx, outgoing(m), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
				<-room
				c.arrived.Add(1, nil)
			})
			return nil
		})
	}
}

// outgoing is a message as the library takes it.
func outgoing(m *core.Message) *pulsar.ProducerMessage {
	out := &pulsar.ProducerMessage{Payload: m.Payload}
	for _, h := range m.Headers {
		if h.Name == "partition-key" {
			out.Key = string(h.Value)
			continue
		}
		if out.Properties == nil {
			out.Properties = make(map[string]string, len(m.Headers))
		}
		out.Properties[h.Name] = string(h.Value)
	}
	return out
}

// subscribes reads and acks each message: with the library's defaults, or in lists
// whose answers are awaited, as our transport does.
func (c *client) subscribes(lists bool) role {
	return func(ctx context.Context, connected func(), _ <-chan order) error {
		l, err := c.connectLibrary()
		if err != nil {
			return err
		}
		defer l.Close()
		s, err := l.Subscribe(pulsar.ConsumerOptions{
			Topic: c.topic, SubscriptionName: c.id, Type: pulsar.Shared, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
			AckWithResponse: lists, EnableBatchIndexAcknowledgment: lists,
		})
		if err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		connected()
		if lists {
			return c.readAndList(ctx, s)
		}
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case m := <-s.Chan():
				c.arrived.Add(1, m.Payload())
				if err := s.Ack(m); err != nil {
					return fmt.Errorf("ack: %w", err)
				}
			}
		}
	}
}

// readAndList reads, and acks in one list what has gathered while the one before
// was under way.
func (c *client) readAndList(ctx context.Context, s pulsar.Consumer) error {
	var mu sync.Mutex
	var ids []pulsar.MessageID
	some, failed := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		for range some {
			mu.Lock()
			list := ids
			ids = nil
			mu.Unlock()
			if err := s.AckIDList(list); err != nil {
				failed <- fmt.Errorf("ack: %w", err)
				return
			}
		}
	}()
	defer close(some)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case m := <-s.Chan():
			c.arrived.Add(1, m.Payload())
			mu.Lock()
			ids = append(ids, m.ID())
			mu.Unlock()
			select {
			case some <- struct{}{}:
			default:
			}
		}
	}
}
