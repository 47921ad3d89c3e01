// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/intake"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

var broker pulsarbroker.Shared

func TestMain(m *testing.M) { broker.Main(m) }

// patience is how long a test waits for what must come.
const patience = pulsarbroker.Limit

// types are the subscription types, by their names.
var types = map[string]wire.SubscriptionType{
	"shared": wire.Shared, "key_shared": wire.KeyShared, "exclusive": wire.Exclusive, "failover": wire.Failover,
}

func counts(t wire.SubscriptionType) bool { return t == wire.Shared || t == wire.KeyShared }

// kit is an intake with a reader of its own.
type kit struct {
	tb    testing.TB
	b     *pulsarbroker.Broker
	topic string
	inner *intake.Intake
	sub   pluginapi.Subscription // held or the intake itself
	got   chan delivery
	stop  context.CancelFunc
	ended chan error

	mu    sync.Mutex
	room  pluginapi.Room
	voids map[any]bool // returns
}

// delivery is what a test sees of one.
type delivery struct {
	text    string
	handle  any
	attempt uint32
	id      string
	at      time.Time
}

// connect returns a client, closed when the test ends.
func connect(tb testing.TB, url string) *client.Client {
	tb.Helper()
	address, err := client.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := client.New(client.Config{Address: address, OperationTimeout: patience})
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Connect(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			tb.Logf("close the client: %v", err)
		}
	})
	return c
}

// name is a topic of the test's own.
func name(tb testing.TB) string {
	return fmt.Sprintf("%s-%d", strings.NewReplacer("/", "-", "#", "-").Replace(tb.Name()), time.Now().UnixNano())
}

type options struct {
	kind       wire.SubscriptionType
	timeout    time.Duration
	queue      int
	bare       bool // without Held
	batchWait  time.Duration
	url, topic string
	name       string // of the consumer
}

// open subscribes to a topic, and reads it until the test ends.
func open(tb testing.TB, b *pulsarbroker.Broker, o options) *kit {
	tb.Helper()
	if o.topic == "" {
		o.topic = name(tb)
	}
	if o.queue == 0 {
		o.queue = 1000
	}
	if o.url == "" {
		o.url = b.URL()
	}
	n, err := topic.Parse(o.topic)
	if err != nil {
		tb.Fatal(err)
	}
	k := &kit{
		tb: tb, b: b, topic: o.topic, got: make(chan delivery, 1<<16), ended: make(chan error, 1),
		voids: map[any]bool{}, room: pluginapi.Room{Messages: 1 << 16, Bytes: 1 << 30},
	}
	profile := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow, MaxHold: o.timeout, Unsettled: core.UnsettledOnDisconnect, Durable: true}
	if o.timeout > 0 {
		profile.Unsettled = core.UnsettledOnTimeout
	}
	if counts(o.kind) {
		profile.Counts = core.CountNative
	}
	k.inner, err = intake.Open(tb.Context(), intake.Config{
		Feed: feed.Config{
			Client: connect(tb, o.url), Subscription: "s", Type: o.kind, ConsumerName: o.name, Topics: []feed.Topic{{Name: n, As: o.topic}},
			Earliest: true, ReceiverQueue: o.queue, Discovery: time.Second, RetryDelay: time.Second,
		},
		Profile: profile, AckTimeout: o.timeout, BatchWait: cmp.Or(o.batchWait, 20*time.Millisecond),
	})
	if err != nil {
		tb.Fatal(err)
	}
	k.sub = k.inner
	if !o.bare {
		k.sub = pluginapi.Held(k.inner, 0)
	}
	k.sub.Profiles()
	k.begin()
	tb.Cleanup(func() { k.close() })
	return k
}

// begin begins to read.
func (k *kit) begin() {
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.WithoutCancel(k.tb.Context()))
	go k.read(ctx)
}

// read receives until the end.
func (k *kit) read(ctx context.Context) {
	for {
		k.mu.Lock()
		room := k.room
		k.mu.Unlock()
		b, err := k.sub.Receive(ctx, room)
		k.mu.Lock()
		for _, v := range b.Voids {
			for _, h := range v.Handles {
				k.voids[h] = v.Returns
			}
		}
		k.mu.Unlock()
		now := time.Now()
		for i := range b.Deliveries {
			d := &b.Deliveries[i]
			k.got <- delivery{string(d.Message.Payload), d.Handle, d.Attempt, string(d.Identity), now}
		}
		if b.Memory != nil {
			b.Memory.Release()
		}
		if err != nil {
			k.ended <- err
			return
		}
	}
}

// void reports whether a delivery is void, and comes again.
func (k *kit) void(d delivery) (void, returns bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	returns, void = k.voids[d.handle]
	return void, returns
}

// close ends the subscription in order.
func (k *kit) close() {
	k.tb.Helper()
	if k.stop == nil {
		return
	}
	k.stop()
	k.stop = nil
	if err := <-k.ended; !errors.Is(err, context.Canceled) {
		k.tb.Errorf("Receive ended with %v", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.tb.Context()), patience)
	defer cancel()
	if err := k.sub.Close(ctx); err != nil {
		k.tb.Errorf("close: %v", err)
	}
}

// next is the next delivery.
func (k *kit) next() delivery {
	k.tb.Helper()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case d := <-k.got:
		return d
	case err := <-k.ended:
		k.ended <- err
		k.tb.Fatalf("Receive ended with %v", err)
	case <-t.C:
		k.tb.Fatalf("nothing was delivered within %v", patience)
	}
	return delivery{}
}

// take are the next n deliveries.
func (k *kit) take(n int) []delivery {
	k.tb.Helper()
	ds := make([]delivery, n)
	for i := range ds {
		ds[i] = k.next()
	}
	return ds
}

// quiet fails the test if something is delivered.
func (k *kit) quiet(d time.Duration) {
	k.tb.Helper()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case x := <-k.got:
		k.tb.Errorf("delivered %q, attempt %d", x.text, x.attempt)
	case <-t.C:
	}
}

// settle sends verdicts, and fails the test where one is not done.
func (k *kit) settle(kind core.VerdictKind, delay time.Duration, ds ...delivery) {
	k.tb.Helper()
	vs := make([]pluginapi.Verdict, len(ds))
	for i, d := range ds {
		vs[i] = pluginapi.Verdict{Handle: d.handle, Kind: kind, Delay: delay}
	}
	for i, r := range k.sub.Settle(k.tb.Context(), vs) {
		if r.Status != pluginapi.ResultDone {
			k.tb.Errorf("verdict on %q: %+v", ds[i].text, r)
		}
	}
}

func (k *kit) ack(ds ...delivery) {
	k.tb.Helper()
	k.settle(core.VerdictAck, 0, ds...)
}

func (k *kit) requeue(delay time.Duration, ds ...delivery) {
	k.tb.Helper()
	k.settle(core.VerdictRequeue, delay, ds...)
}

// ackLate acks void deliveries.
func (k *kit) ackLate(ds ...delivery) {
	k.tb.Helper()
	for _, d := range ds {
		if r := k.inner.AckLate(k.tb.Context(), []any{d.handle}); r[0].Status != pluginapi.ResultDone {
			k.tb.Errorf("late ack of %q: %+v", d.text, r)
		}
	}
}

// peer is the raw client.
func peer(tb testing.TB, url string) pulsar.Client {
	tb.Helper()
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: url, Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(), OperationTimeout: patience,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// publish has a peer publish messages m0, m1 ... from a first number on, in one batch
// where batch is set, and returns behind the last receipt.
func (k *kit) publish(first, n int, batch bool) {
	k.tb.Helper()
	p, err := peer(k.tb, k.b.URL()).CreateProducer(pulsar.ProducerOptions{
		Topic: k.topic, DisableBatching: !batch, BatchingMaxMessages: uint(max(n, 2)), BatchingMaxPublishDelay: time.Second,
		MaxPendingMessages: n, SendTimeout: -1,
	})
	if err != nil {
		k.tb.Fatal(err)
	}
	defer p.Close()
	receipts := make(chan error, n)
	for i := range n {
		m := &pulsar.ProducerMessage{Payload: fmt.Appendf(nil, "m%d", first+i), Key: "k"}
		p.SendAsync(k.tb.Context(), m, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { receipts <- err })
	}
	if err := p.FlushWithCtx(k.tb.Context()); err != nil {
		k.tb.Fatal(err)
	}
	for range n {
		if err := <-receipts; err != nil {
			k.tb.Fatal(err)
		}
	}
}

// publishSized has a peer publish n messages of so many bytes.
func (k *kit) publishSized(n, size int) {
	k.tb.Helper()
	p, err := peer(k.tb, k.b.URL()).CreateProducer(pulsar.ProducerOptions{Topic: k.topic, DisableBatching: true, SendTimeout: -1})
	if err != nil {
		k.tb.Fatal(err)
	}
	defer p.Close()
	receipts := make(chan error, n)
	payload := make([]byte, size)
	for range n {
		p.SendAsync(k.tb.Context(), &pulsar.ProducerMessage{Payload: payload}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { receipts <- err })
	}
	for range n {
		if err := <-receipts; err != nil {
			k.tb.Fatal(err)
		}
	}
}

// backlog waits until so many messages are unacked.
func (k *kit) backlog(n int64) {
	k.tb.Helper()
	k.b.AwaitBacklog(k.topic, "s", n)
}
