// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// broker lets in whoever has a token, and "admin" do everything, and keeps what was
// acked of a batch.
var broker = pulsarbroker.Shared{Config: pulsarbroker.Config{
	Tokens: true, Authorize: true, Lines: []string{"acknowledgmentAtBatchIndexLevelEnabled=true"},
}}

func TestMain(m *testing.M) { broker.Main(m) }

// never is longer than any test.
const never = 24 * time.Hour

// patience is how long a test waits for what must come.
const patience = pulsarbroker.Limit

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// within takes one value out of a channel.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("not reached")
	}
}

var numbers atomic.Int64

// name is a topic of the test's own.
func name(t *testing.T) string {
	t.Helper()
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == '_' {
			return '-'
		}
		return r
	}, t.Name())
	return fmt.Sprintf("%s-%d", clean, numbers.Add(1))
}

func parsed(t *testing.T, s string) topic.Name {
	t.Helper()
	n, err := topic.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// connected is a client of the broker; the test's end closes it.
func connected(t *testing.T, b *pulsarbroker.Broker) *client.Client {
	t.Helper()
	return connectedTo(t, b.URL(), b.Token("admin"))
}

func connectedTo(t *testing.T, url, token string) *client.Client {
	t.Helper()
	return connectedFor(t, url, token, patience/3)
}

// connectedFor has a limit of its own for what is asked of the broker.
func connectedFor(t *testing.T, url, token string, limit time.Duration) *client.Client {
	t.Helper()
	address, addressErr := client.ParseURL(url)
	if addressErr != nil {
		t.Fatal(addressErr)
	}
	c, err := client.New(client.Config{Address: address, Token: core.NewSecret(token), OperationTimeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error("close the client:", err)
		}
	})
	return c
}

// quick are waits for tests.
func quick() times {
	t := defaultTimes()
	t.retryMost = 500 * time.Millisecond
	return t
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// fed is a feed and what it has read.
type fed struct {
	*Feed
	t     *testing.T
	log   *lines
	ended chan *core.Fault
	ack   atomic.Bool // acks what comes

	mu     sync.Mutex
	counts map[string]int // by payload
	order  map[string][]string
	seen   []*Batch // with Back or Lost
	held   []wire.Message
	from   map[string]*Partition // by payload
	epochs map[string]uint64     // the last of a payload
	stop   chan struct{}
	done   chan struct{}
}

func config(c *client.Client, subscription string, topics ...topic.Name) Config {
	cfg := Config{
		Client: c, Subscription: subscription, Type: wire.Shared, Earliest: true,
		ReceiverQueue: 100, Discovery: time.Second, RetryDelay: 200 * time.Millisecond,
	}
	for _, n := range topics {
		cfg.Topics = append(cfg.Topics, Topic{Name: n, As: n.Local})
	}
	return cfg
}

// opened opens a feed and reads it, acking what comes; the test's end closes it.
func opened(t *testing.T, c Config) *fed {
	t.Helper()
	f, err := tryOpen(t.Context(), t, c, quick())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tryOpen(ctx context.Context, t *testing.T, c Config, times times) (*fed, error) {
	t.Helper()
	f := &fed{
		t: t, log: &lines{}, ended: make(chan *core.Fault, 1), counts: map[string]int{},
		order: map[string][]string{}, from: map[string]*Partition{}, epochs: map[string]uint64{},
	}
	f.ack.Store(true)
	c.Log = slog.New(slog.NewTextHandler(f.log, nil))
	c.Ended = func(why *core.Fault) { f.ended <- why }
	var err error
	if f.Feed, err = open(ctx, c, times); err != nil {
		return nil, err
	}
	f.read()
	t.Cleanup(func() {
		f.pause()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := f.Close(ctx); err != nil {
			t.Error("close the feed:", err)
		}
		if t.Failed() {
			t.Log(f.log)
		}
	})
	return f, nil
}

// read reads until pause.
func (f *fed) read() {
	f.stop, f.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(f.done)
		for {
			select {
			case b := <-f.Batches():
				f.take(b)
			case <-f.stop:
				return
			}
		}
	}()
}

func (f *fed) pause() {
	select {
	case <-f.stop:
	default:
		close(f.stop)
	}
	<-f.done
}

func (f *fed) take(b *Batch) {
	if b.Stale() {
		f.Release(b)
		return
	}
	f.mu.Lock()
	if b.Back || b.Lost {
		f.seen = append(f.seen, &Batch{Partition: b.Partition, Epoch: b.Epoch, Back: b.Back, Lost: b.Lost})
	}
	for _, m := range b.Messages {
		payload := string(m.Payload)
		f.counts[payload]++
		f.order[b.Partition.Scope] = append(f.order[b.Partition.Scope], payload)
		f.from[payload] = b.Partition
		f.epochs[payload] = b.Epoch
		f.held = append(f.held, m)
	}
	f.mu.Unlock()
	if f.ack.Load() && len(b.Messages) > 0 {
		if err := b.Partition.Ack(whole(b.Messages...)); err != nil {
			f.t.Log("ack:", err)
		}
	}
	f.Release(b)
}

// whole are the entries of messages.
func whole(messages ...wire.Message) []wire.Acked {
	var acks []wire.Acked
	for _, m := range messages {
		a := wire.Acked{Ledger: m.ID.Ledger, Entry: m.ID.Entry}
		if n := len(acks); n == 0 || acks[n-1].Ledger != a.Ledger || acks[n-1].Entry != a.Entry {
			acks = append(acks, a)
		}
	}
	return acks
}

// got is how many different payloads have come that begin so.
func (f *fed) got(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for payload := range f.counts {
		if strings.HasPrefix(payload, prefix) {
			n++
		}
	}
	return n
}

func (f *fed) count(payload string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[payload]
}

// epoch is the last in which a payload has come.
func (f *fed) epoch(payload string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epochs[payload]
}

func (f *fed) forgetAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.counts)
	clear(f.order)
	f.held, f.seen = nil, nil
}

// markers is how many batches have said so.
func (f *fed) markers(so func(*Batch) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, b := range f.seen {
		if so(b) {
			n++
		}
	}
	return n
}

// raw is a client of the library, a peer; the test's end closes it.
func raw(t *testing.T, b *pulsarbroker.Broker) pulsar.Client {
	t.Helper()
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: b.URL(), Authentication: pulsar.NewAuthenticationToken(b.Token("admin")), Logger: log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil))),
		MetricsRegisterer: prometheus.NewRegistry(), OperationTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// producer publishes to a topic.
func producer(t *testing.T, c pulsar.Client, to string) pulsar.Producer {
	t.Helper()
	p, err := c.CreateProducer(pulsar.ProducerOptions{
		Topic: to, SendTimeout: -1, DisableBatching: true, PartitionsAutoDiscoveryInterval: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// publish publishes prefix0, prefix1, ... keyed by themselves.
func publish(t *testing.T, p pulsar.Producer, prefix string, n int) {
	t.Helper()
	for i := range n {
		payload := fmt.Sprintf("%s%d", prefix, i)
		if _, err := p.Send(t.Context(), &pulsar.ProducerMessage{Payload: []byte(payload), Key: payload}); err != nil {
			t.Fatal(err)
		}
	}
}
