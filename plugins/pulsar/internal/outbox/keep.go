// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Keep gives a topic, and each of its partitions, a durable shared subscription from
// the earliest message on, unless it has one of that name: a topic without any keeps
// nothing that is published. The error is a *core.Fault.
//
// It subscribes, asks for no message, and closes again.
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
		go func() { done <- o.subscribe(ctx, name.String(), subscription) }()
	}
	var failed error
	for range names {
		if err := <-done; failed == nil && err != nil {
			failed = client.Explain(what, err)
		}
	}
	return failed
}

// subscribe makes the subscription of one topic or partition. One that others read
// exclusively is there already.
func (o *Outbox) subscribe(ctx context.Context, name, subscription string) error {
	conn, err := o.c.Client.Broker(ctx, name)
	if err != nil {
		return err
	}
	id := conn.Consumer(deaf{})
	defer conn.ForgetConsumer(id)
	_, err = conn.Ask(ctx, wire.TypeSuccess, func(dst []byte, number uint64) []byte {
		return wire.AppendSubscribe(dst, number, wire.Subscribe{
			ID: id, Topic: name, Subscription: subscription, Type: wire.Shared, Earliest: true, Create: true,
		})
	})
	if refusal, ok := errors.AsType[*client.ServerError](err); ok {
		if refusal.Code == wire.ConsumerBusy {
			return nil
		}
		return err
	}
	// Also where there was no answer: the broker may have it by now.
	_, closing := conn.Ask(context.WithoutCancel(ctx), wire.TypeSuccess, func(dst []byte, number uint64) []byte {
		return wire.AppendCloseConsumer(dst, number, id)
	})
	if closing != nil {
		o.c.Log.Debug("Pulsar consumer not closed by its broker", "topic", name, "reason", closing)
	}
	return err
}

// deaf is a consumer that asks for no message.
type deaf struct{}

// Entry, Pause, Active, Closed and Lost take nothing.
func (deaf) Entry(*wire.Delivery) {}

// Pause is as Entry.
func (deaf) Pause() {}

// Active is as Entry.
func (deaf) Active(bool) {}

// Closed is as Entry.
func (deaf) Closed() {}

// Lost is as Entry: who asks hears of it.
func (deaf) Lost(error) {}
