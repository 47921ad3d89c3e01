// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// The defaults of batching.
const (
	defaultBatchDelay    = time.Millisecond
	defaultBatchMessages = 1000
)

// maxNames is how many names of destinations are read once.
const maxNames = 1024

// keepLimit is how long the dead letters' subscriptions may take at a start.
const keepLimit = 10 * time.Second

// publisher publishes for a conn. Publish is called by one goroutine at a time.
type publisher struct {
	settings *settings.Settings
	client   *client.Client
	out      *outbox.Outbox
	options  publishOptions
	names    map[string]topic.Name
}

func newPublisher(e *endpoint, c *client.Client) *publisher {
	s := &e.settings
	config := outbox.Config{
		Client: c, Timeout: time.Duration(s.PublishTimeout), Window: s.PublishWindow, Producers: s.MaxProducers,
		Name: s.ProducerName, Discovery: time.Duration(s.DiscoveryInterval), Compression: compressions[s.Compression],
		Log: e.log,
	}
	if s.Batching {
		config.Batch = cmp.Or(time.Duration(s.BatchDelay), defaultBatchDelay)
		config.BatchMessages = cmp.Or(s.BatchMessages, defaultBatchMessages)
	}
	return &publisher{settings: s, client: c, out: outbox.New(config), names: make(map[string]topic.Name)}
}

// compressions are the protocol's values of the setting; never written to.
var compressions = map[string]wire.Compression{
	settings.CompressionNone: wire.NoCompression,
	settings.CompressionLZ4:  wire.LZ4,
	settings.CompressionZLib: wire.ZLib,
	settings.CompressionZSTD: wire.ZSTD,
}

// Publish sends messages in order and waits for nobody. A receipt is confirmed when
// the broker has stored the message.
func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	now := time.Now()
	for i := range msgs {
		if f := c.publisher.publish(&msgs[i], i, now, done); f != nil {
			done(i, pluginapi.Refused(f))
		}
	}
}

// publish has one message sent. Unless it returns a fault done is called.
func (p *publisher) publish(m *pluginapi.Outgoing, i int, at time.Time, done func(int, pluginapi.Receipt)) *core.Fault {
	name := m.Message.Name
	to, err := p.topic(name)
	if err != nil {
		return fault.Of(fault.PublishTo(name), err)
	}
	o, err := p.options.of(m.Options)
	if err != nil {
		return fault.Of(fault.PublishTo(name), err)
	}
	if wrong := checkPublish(o, p.settings); len(wrong) > 0 {
		return &core.Fault{Code: core.FaultInvalid, Message: fault.PublishTo(name), Diagnostics: wrong}
	}
	if f := message.Check(&m.Message); f != nil {
		return f
	}
	out := p.message(m, o, at)
	if f := message.CheckSize(name, &out, p.limit()); f != nil {
		return f
	}
	return p.out.Add(&outbox.Post{Topic: to, Name: name, Message: out, At: at, Done: done, I: i})
}

// topic reads the name of a destination.
func (p *publisher) topic(name string) (topic.Name, error) {
	if n, ok := p.names[name]; ok {
		return n, nil
	}
	n, err := topic.Parse(name)
	if err != nil {
		return topic.Name{}, err
	}
	if len(p.names) >= maxNames {
		clear(p.names)
	}
	p.names[name] = n
	return n, nil
}

// brokerTick is how much earlier than asked the broker may deliver: its
// delayedDeliveryTickTimeMillis, as it is by default. A shorter delay is none to it.
const brokerTick = time.Second

// message is what is published of a message. What the host asks for is not to come
// before its time, so the broker's tick is added. The option DeliverAfter beats it, and
// is as exact as the broker is.
func (p *publisher) message(m *pluginapi.Outgoing, o *settings.PublishOptions, at time.Time) wire.Outgoing {
	said := message.Options{Key: o.Key, OrderingKey: o.OrderingKey, EventTime: o.EventTime}
	var out wire.Outgoing
	if m.Carry == nil {
		out = message.For(&m.Message, said)
	} else {
		out = message.DeadLetter(&m.Message, said, m.Carry)
	}
	out.Sequence = o.SequenceID
	after := time.Duration(o.DeliverAfter)
	if after <= 0 && m.DeliverAfter > 0 {
		after = m.DeliverAfter + brokerTick
	}
	if after > 0 {
		out.DeliverAt = at.Add(after).UnixMilli()
	}
	return out
}

// limit is the most bytes of a payload: the setting's, or the broker's where that is
// lower.
func (p *publisher) limit() int {
	return min(int(p.settings.MaxMessageSize), p.client.MaxMessageSize())
}

// keepFix says what helps a dead letter that got no subscription: where the topic
// cannot be, a subscription of it cannot either, and the reason says what to do.
func keepFix(err error, subscription string) string {
	if f, ok := errors.AsType[*core.Fault](err); ok && f.Code == core.FaultNotFound {
		return "create the topic, its tenant and its namespace, or the dead letters cannot be written"
	}
	return "make the subscription " + subscription + " of it, or another one"
}

// keep gives dead letters their subscription, all at once. What fails is a warning:
// the broker may know the topic only later, or let somebody else make it.
func (p *publisher) keep(ctx context.Context, e *endpoint) {
	subscription := *p.settings.DeadLetterSubscription
	if subscription == "" || len(e.dead) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, n := range e.dead {
		all.Go(func() {
			if err := p.out.Keep(ctx, n, subscription); err != nil {
				e.log.Warn(fmt.Sprintf("the dead letter %s keeps nothing until it has a subscription", n), "error", err,
					"fix", keepFix(err, subscription))
			}
		})
	}
	all.Wait()
}
