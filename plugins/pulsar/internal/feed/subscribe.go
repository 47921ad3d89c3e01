// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// never is longer than any process lives. The library looks for new partitions of a
// partition, which has none.
const never = 100 * 365 * 24 * time.Hour

// subscribe makes a consumer for a partition. It returns when ctx ends, and closes
// what the library makes after that.
func (f *Feed) subscribe(ctx context.Context, p *Partition) (*member, error) {
	select {
	case f.openings <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	m := newMember(p)
	options := f.options(p, m)
	done := make(chan error, 1)
	f.library.Go(func() {
		defer func() { <-f.openings }()
		var err error
		m.consumer, err = f.Client.Library().Subscribe(options)
		done <- err
	})
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return m, nil
	case <-ctx.Done():
		f.library.Go(func() {
			if <-done == nil {
				m.consumer.Close()
			}
		})
		return nil, context.Cause(ctx)
	}
}

// options are those of the consumer of a partition.
func (f *Feed) options(p *Partition, m *member) pulsar.ConsumerOptions {
	o := pulsar.ConsumerOptions{
		Topic:            p.Scope,
		SubscriptionName: f.Subscription,
		Type:             f.Type,
		Name:             f.ConsumerName,

		SubscriptionInitialPosition: pulsar.SubscriptionPositionLatest,
		ReceiverQueueSize:           f.ReceiverQueue,
		MessageChannel:              m.arrived,
		AutoDiscoveryPeriod:         never,
		// The library would bring the consumer back by itself: refused ones for ever, one
		// whose topic is gone never or by making the topic again.
		MaxReconnectToBroker: new(uint),
		BackOffPolicyFunc:    m.policy,
		// Acks with a response go out as they are given; grouping would add a timer.
		AckWithResponse:    true,
		AckGroupingOptions: &pulsar.AckGroupingOptions{MaxSize: 1},
		// Else an ack of one message of a batch is kept in this process alone.
		EnableBatchIndexAcknowledgment: true,
	}
	// A subscription that was there and is not any more went with its topic: what comes
	// now is all of a new one.
	if p.beginsEarliest() || p.epoch.Load() > 0 {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	}
	if f.Tune != nil {
		f.Tune(&o)
	}
	return o
}
