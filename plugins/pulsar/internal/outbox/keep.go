// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Keep gives a topic, and each of its partitions, a durable shared subscription from
// the earliest message on, unless it has one of that name: a topic without any keeps
// nothing that is published. The error is a *core.Fault.
//
// It subscribes and closes again, since the library can have that done with a
// producer for its own dead letters alone. Where ctx ends first, what was begun ends
// by itself, with Close waiting for it.
func (o *Outbox) Keep(ctx context.Context, n topic.Name, subscription string) error {
	what := fmt.Sprintf("make the subscription %q of topic %s", subscription, n)
	names := []topic.Name{n}
	if n.Partition == topic.NoPartition {
		partitions, err := o.c.Client.Partitions(ctx, n)
		if err != nil {
			return client.Explain(what, err)
		}
		if partitions > 0 {
			names = names[:0]
		}
		for i := range partitions {
			names = append(names, n.At(i))
		}
	}
	done := make(chan error, len(names))
	for _, name := range names {
		o.work.Go(func() { done <- o.subscribe(name, subscription) })
	}
	for range names {
		select {
		case err := <-done:
			if err != nil {
				return client.Explain(what, err)
			}
		case <-ctx.Done():
			return client.Explain(what, ctx.Err())
		}
	}
	return nil
}

// subscribe makes the subscription of one topic or partition. One that others read
// exclusively is there already. With a queue of 0 no message leaves the broker.
func (o *Outbox) subscribe(n topic.Name, subscription string) error {
	c, err := o.c.Client.Library().Subscribe(pulsar.ConsumerOptions{
		Topic: n.String(), SubscriptionName: subscription, Type: pulsar.Shared,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		EnableZeroQueueConsumer:     true,
	})
	if err != nil {
		if code, ok := client.Refused(err); ok && code == wire.ConsumerBusy {
			return nil
		}
		return err
	}
	c.Close()
	return nil
}
