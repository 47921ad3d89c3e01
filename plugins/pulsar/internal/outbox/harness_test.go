// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"fmt"
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
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

var broker pulsarbroker.Shared

func TestMain(m *testing.M) { broker.Main(m) }

const (
	// patience is how long a test waits for what must come.
	patience = pulsarbroker.Limit
	// hasty is how long a message may wait that is to be given up: long enough for what
	// a test does before that.
	hasty = 4 * time.Second
)

// kit is an outbox with its client.
type kit struct {
	tb     testing.TB
	box    *outbox.Outbox
	client *client.Client
}

// open returns an outbox at a broker, closed when the test ends.
func open(tb testing.TB, b *pulsarbroker.Broker, change ...func(*outbox.Config)) *kit {
	tb.Helper()
	return openAt(tb, b.URL(), change...)
}

func openAt(tb testing.TB, url string, change ...func(*outbox.Config)) *kit {
	tb.Helper()
	k := &kit{tb: tb, client: connect(tb, url)}
	c := outbox.Config{Client: k.client, Timeout: patience / 2}
	for _, f := range change {
		f(&c)
	}
	k.box = outbox.New(c)
	tb.Cleanup(func() { k.close(5 * time.Second) })
	return k
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			tb.Logf("close the client: %v", err)
		}
	})
	return c
}

func (k *kit) close(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.tb.Context()), limit)
	defer cancel()
	if err := k.box.Close(ctx); err != nil {
		k.tb.Logf("close the outbox: %v", err)
	}
}

// receipts gathers what becomes of messages.
type receipts struct {
	tb   testing.TB
	mu   sync.Mutex
	got  map[int]pluginapi.Receipt
	when map[int]time.Time
	more chan struct{}
}

func newReceipts(tb testing.TB) *receipts {
	return &receipts{tb: tb, got: make(map[int]pluginapi.Receipt), when: make(map[int]time.Time), more: make(chan struct{}, 1)}
}

func (r *receipts) done(i int, receipt pluginapi.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.got[i]; twice {
		r.tb.Errorf("message %d has two receipts", i)
	}
	r.got[i], r.when[i] = receipt, time.Now()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// await returns the receipts once there are n.
func (r *receipts) await(n int) map[int]pluginapi.Receipt {
	r.tb.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		r.mu.Lock()
		if len(r.got) >= n {
			defer r.mu.Unlock()
			return r.got
		}
		have := len(r.got)
		r.mu.Unlock()
		select {
		case <-r.more:
		case <-late.C:
			r.tb.Fatalf("%d of %d receipts within %s", have, n, patience)
		}
	}
}

// confirmed wants n receipts, all of them confirmed.
func (r *receipts) confirmed(n int) map[int]pluginapi.Receipt {
	r.tb.Helper()
	got := r.await(n)
	for i, x := range got {
		if x.Status != pluginapi.ReceiptConfirmed {
			r.tb.Fatalf("message %d: %v, %v", i, x.Status, x.Fault)
		}
	}
	return got
}

// post publishes a text.
func (k *kit) post(r *receipts, i int, to, text string) *core.Fault {
	return k.send(r, i, to, wire.Outgoing{Payload: []byte(text)})
}

func (k *kit) send(r *receipts, i int, to string, m wire.Outgoing) *core.Fault {
	return k.box.Add(&outbox.Post{Topic: parse(k.tb, to), Name: to, Message: m, Done: r.done, I: i})
}

// add publishes a text whose receipt done takes.
func (k *kit) add(i int, to, text string, done func(int, pluginapi.Receipt)) *core.Fault {
	return k.box.Add(&outbox.Post{Topic: parse(k.tb, to), Name: to, Message: wire.Outgoing{Payload: []byte(text)}, Done: done, I: i})
}

func parse(tb testing.TB, s string) topic.Name {
	tb.Helper()
	n, err := topic.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func decode(position []byte) (topic.Name, topic.ID, error) { return topic.DecodePosition(position) }

// one publishes a text and returns its receipt.
func (k *kit) one(to, text string) pluginapi.Receipt {
	k.tb.Helper()
	r := newReceipts(k.tb)
	if f := k.post(r, 0, to, text); f != nil {
		k.tb.Fatal(f)
	}
	return r.await(1)[0]
}

// warm publishes to a topic until a message has arrived.
func (k *kit) warm(to string) {
	k.tb.Helper()
	eventually(k.tb, "a message to arrive", func() bool { return k.one(to, "warm").Status == pluginapi.ReceiptConfirmed })
}

// peer is a client of the library alone.
func peer(tb testing.TB, b *pulsarbroker.Broker) pulsar.Client {
	tb.Helper()
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: b.URL(), Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(), OperationTimeout: patience,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// read returns the first n messages of a topic.
func read(tb testing.TB, b *pulsarbroker.Broker, from string, n int) []pulsar.Message {
	tb.Helper()
	c, err := peer(tb, b).Subscribe(pulsar.ConsumerOptions{
		Topic: from, SubscriptionName: "reader", Type: pulsar.Exclusive, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	return receive(tb, c, n)
}

func receive(tb testing.TB, c pulsar.Consumer, n int) []pulsar.Message {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	var got []pulsar.Message
	for len(got) < n {
		m, err := c.Receive(ctx)
		if err != nil {
			tb.Fatalf("%d of %d messages: %v", len(got), n, err)
		}
		_ = c.Ack(m)
		got = append(got, m)
	}
	return got
}

// eventually waits until something is so.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			tb.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// name returns the name of a topic that no other test has.
func name(tb testing.TB, suffix string) string {
	return fmt.Sprintf("%s-%s", clean(tb.Name()), suffix)
}

func clean(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '/' || c == '#' || c == ' ' {
			b[i] = '-'
		}
	}
	return string(b)
}
