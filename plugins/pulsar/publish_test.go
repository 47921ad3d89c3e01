// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// connection returns an endpoint's connection to a broker, closed when the test
// ends.
func connection(t *testing.T, b *pulsarbroker.Broker, set settings.Settings, u pluginapi.Usage) pluginapi.Conn {
	t.Helper()
	set.URL = settings.URL(b.URL())
	e := configure(t, set)
	for i, d := range e.Inspect(u).Destinations {
		if len(d.Findings) > 0 {
			t.Fatalf("destination %d: %+v", i, d.Findings)
		}
	}
	c, err := e.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), pulsarbroker.Limit)
		defer cancel()
		if _, err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// publish publishes messages and returns their receipts.
func publish(t *testing.T, c pluginapi.Conn, msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	t.Helper()
	type answer struct {
		i int
		r pluginapi.Receipt
	}
	got := make([]pluginapi.Receipt, len(msgs))
	answers := make(chan answer, len(msgs))
	c.Publish(t.Context(), msgs, func(i int, r pluginapi.Receipt) { answers <- answer{i, r} })
	for range msgs {
		select {
		case a := <-answers:
			got[a.i] = a.r
		case <-time.After(pulsarbroker.Limit):
			t.Fatal("no receipt")
		}
	}
	return got
}

// to is a message for a topic.
func to(name, payload string, headers ...string) pluginapi.Outgoing {
	m := core.Message{Name: name, Payload: []byte(payload)}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Headers = append(m.Headers, core.Header{Name: headers[i], Value: []byte(headers[i+1])})
	}
	return pluginapi.Outgoing{Message: m, Purpose: pluginapi.PurposeApplication}
}

// with gives a message options.
func with(t *testing.T, m pluginapi.Outgoing, o settings.PublishOptions) pluginapi.Outgoing {
	t.Helper()
	var err error
	if m.Options, err = pluginapi.EncodeOptions(o); err != nil {
		t.Fatal(err)
	}
	return m
}

// kept returns the first n messages of a topic.
func kept(t *testing.T, b *pulsarbroker.Broker, from, subscription string, n int) []client.Message {
	t.Helper()
	c, err := client.NewClient(client.ClientOptions{URL: b.URL(), Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Subscribe(client.ConsumerOptions{
		Topic: from, SubscriptionName: subscription, Type: client.Shared, SubscriptionInitialPosition: client.SubscriptionPositionEarliest,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), pulsarbroker.Limit)
	defer cancel()
	var got []client.Message
	for len(got) < n {
		m, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("%d of %d messages: %v", len(got), n, err)
		}
		_ = s.Ack(m)
		got = append(got, m)
	}
	return got
}

// What cannot be carried is refused before it is sent, with what is wrong, and what
// comes behind it goes on its way.
func TestPublishRefused(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	c := connection(t, b, settings.Settings{MaxMessageSize: 64 << 10}, pluginapi.Usage{})
	for _, tt := range []struct {
		name, topic string
		m           pluginapi.Outgoing
		code        core.FaultCode
		words       []string
	}{
		{"S-PUL-31", "large", to("large", strings.Repeat("x", 64<<10+1)), core.FaultTooLarge, []string{"65537", "65536", "max_message_size"}},
		{"S-PUL-31 headers", "wide", to("wide", strings.Repeat("x", 64<<10), "h", strings.Repeat("y", 10<<10)), core.FaultTooLarge, []string{"limit"}},
		{"S-PUL-32", "text", to("text", "x", "x-bin", "\x00\xff"), core.FaultInvalid, []string{"x-bin", "UTF-8"}},
		{"S-PUL-39", "twice", to("twice", "x", "X-Tenant", "a", "x-tenant", "b"), core.FaultInvalid, []string{"x-tenant", "twice"}},
		{"no topic", "", to("a/b", "x"), core.FaultInvalid, []string{"a/b"}},
		{"not persistent", "", to("non-persistent://a/b/c", "x"), core.FaultInvalid, []string{"persistent"}},
		{"sequence_id alone", "numbers", with(t, to("numbers", "x"), settings.PublishOptions{SequenceID: new(int64(1))}), core.FaultInvalid, []string{"sequence_id", "producer_name"}},
		{"deliver_after too long", "late", with(t, to("late", "x"), settings.PublishOptions{DeliverAfter: core.Duration(400 * 24 * time.Hour)}), core.FaultInvalid, []string{"deliver_after"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			msgs := []pluginapi.Outgoing{tt.m}
			if tt.topic != "" {
				msgs = append(msgs, to(tt.topic, "behind it"))
			}
			got := publish(t, c, msgs...)
			r := got[0]
			if r.Status != pluginapi.ReceiptRefused || r.Fault.Code != tt.code || r.Fault.Transient {
				t.Fatalf("receipt %v, %+v", r.Status, r.Fault)
			}
			text := fmt.Sprint(r.Fault, r.Fault.Diagnostics)
			for _, w := range tt.words {
				if !strings.Contains(text, w) {
					t.Errorf("%q lacks %q", text, w)
				}
			}
			if tt.topic == "" {
				return
			}
			if got[1].Status != pluginapi.ReceiptConfirmed {
				t.Fatalf("behind it: %v, %v", got[1].Status, got[1].Fault)
			}
			if m := kept(t, b, tt.topic, "reader", 1)[0]; string(m.Payload()) != "behind it" {
				t.Errorf("the topic has %.20q", m.Payload())
			}
		})
	}
}

// A dead letter keeps payload, key, event time and every property, and says where it
// comes from; what it said itself of that stays (P-06). The count of copies is left
// off (S-PUL-08).
func TestP06DeadLetterContent(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	const origin, dead = "p06-origin", "p06-dead"
	c := connection(t, b, settings.Settings{DefaultSubscription: "s"}, pluginapi.Usage{})
	event := time.UnixMilli(1_700_000_000_123)
	properties := map[string]string{"a": "1", "empty": "", "grüße": "☕", "x-tenant": "acme", "Case": "Kept", "x-origin": "mine"}
	var headers []string
	for k, v := range properties {
		headers = append(headers, k, v)
	}
	payload := "payload \x00\xff"
	if r := publish(t, c, with(t, to(origin, payload, headers...), settings.PublishOptions{Key: "k", OrderingKey: "o", EventTime: event}))[0]; r.Status != pluginapi.ReceiptConfirmed {
		t.Fatal(r.Status, r.Fault)
	}
	source := message.NewSource(topic.Name{Tenant: topic.DefaultTenant, Namespace: topic.DefaultNamespace, Local: origin, Partition: topic.NoPartition}, origin)
	original := kept(t, b, origin, "s", 1)[0]
	var decoder message.Decoder
	d := decoder.Decode(source, delivered(original))
	letter := d.Message.Clone()
	letter.Name = dead
	letter.Headers = append(letter.Headers, core.Header{Name: core.CountHeader, Value: []byte("2")})
	if r := publish(t, c, pluginapi.Outgoing{Message: letter, Purpose: pluginapi.PurposeDeadLetter, Carry: d.Carry})[0]; r.Status != pluginapi.ReceiptConfirmed {
		t.Fatal(r.Status, r.Fault)
	}
	got := kept(t, b, dead, "s", 1)[0]
	want := maps.Clone(properties)
	want[message.RealTopic] = origin
	want[message.OriginMessageID] = d.ID.String()
	switch {
	case string(got.Payload()) != payload:
		t.Errorf("payload %q", got.Payload())
	case got.Key() != "k" || got.OrderingKey() != "o" || !got.EventTime().Equal(event):
		t.Errorf("key %q, ordering key %q, event time %v", got.Key(), got.OrderingKey(), got.EventTime())
	case !maps.Equal(got.Properties(), want):
		t.Errorf("properties %q, want %q", got.Properties(), want)
	}
}

// delivered is a message that the library has read as the plugin would have it.
func delivered(m client.Message) *wire.Message {
	out := &wire.Message{
		ID:  wire.MessageID{Ledger: m.ID().LedgerID(), Entry: m.ID().EntryID(), Batch: wire.NoBatch},
		Key: []byte(m.Key()), OrderingKey: []byte(m.OrderingKey()), EventTime: m.EventTime().UnixMilli(), Payload: m.Payload(),
	}
	for name, value := range m.Properties() {
		out.Properties = append(out.Properties, wire.Property{Name: []byte(name), Value: []byte(value)})
	}
	return out
}

// A dead letter that nobody has ever read is kept: its topic has a subscription from
// the start on, each partition too (P-08).
func TestP08DeadLetterKept(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	b.CreatePartitioned("p08-parts", 3)
	u := usage(registration(t, "p08-origin", settings.SubscribeOptions{Subscription: "s"}))
	u.Registrations[0].Attempts, u.Registrations[0].DeadLetter = 1, "p08-dead"
	u.Destinations = []pluginapi.Target{
		{Name: "p08-dead", Purpose: pluginapi.PurposeDeadLetter, For: []uint32{0}},
		{Name: "p08-parts", Purpose: pluginapi.PurposeDeadLetter, For: []uint32{0}},
	}
	c := connection(t, b, settings.Settings{}, u)
	for _, dead := range []string{"p08-dead", "p08-parts"} {
		var letters []pluginapi.Outgoing
		for i := range 6 {
			m := to(dead, fmt.Sprint(i))
			m.Purpose = pluginapi.PurposeDeadLetter
			letters = append(letters, m)
		}
		for _, r := range publish(t, c, letters...) {
			if r.Status != pluginapi.ReceiptConfirmed {
				t.Fatal(r.Status, r.Fault)
			}
		}
		kept(t, b, dead, "longshore-dead-letters", 6)
	}
}

// What the host delays does not come before its time, though the broker counts in
// ticks.
func TestPublishDelayed(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	c := connection(t, b, settings.Settings{}, pluginapi.Usage{})
	b.CreateTopic("publish-delayed")
	b.CreateSubscription("publish-delayed", "s")
	const delay = 300 * time.Millisecond
	m, began := to("publish-delayed", "x"), time.Now()
	m.DeliverAfter = delay
	if r := publish(t, c, m)[0]; r.Status != pluginapi.ReceiptConfirmed {
		t.Fatal(r.Status, r.Fault)
	}
	kept(t, b, "publish-delayed", "s", 1)
	if took := time.Since(began); took < delay {
		t.Errorf("it came after %v", took)
	}
}
