// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// tally reads a feed, acking all, and counts without keeping anything.
type tally struct {
	t       *testing.T
	f       *Feed
	count   int
	last    int
	ordered bool
}

// read reads until n messages have come in all.
func (y *tally) read(n int) {
	y.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for y.count < n {
		select {
		case b := <-y.f.Batches():
			y.take(b)
		case <-limit.C:
			y.t.Fatalf("%d of %d messages came", y.count, n)
		}
	}
}

func (y *tally) take(b *Batch) {
	defer y.f.Release(b)
	if b.Stale() || len(b.Messages) == 0 {
		return
	}
	for _, m := range b.Messages {
		if i := number(y.t, string(m.Payload)); y.ordered && i != y.last+1 {
			y.t.Fatalf("%d comes behind %d", i, y.last)
		} else {
			y.last = i
		}
	}
	y.count += len(b.Messages)
	if err := b.Partition.Ack(whole(b.Messages...)); err != nil {
		y.t.Error(err)
	}
}

// permits awaits that the broker may send as much as it should: at most the receiver
// queue, and at least half of it.
func permits(t *testing.T, b *pulsarbroker.Broker, n topic.Name, subscription string, queue int) {
	t.Helper()
	eventually(t, "permits within the receiver queue", func() bool {
		c := b.Stats(n.String()).Subscriptions[subscription].Consumers
		if len(c) != 1 {
			return false
		}
		return c[0].Permits <= int64(queue) && c[0].Permits >= int64(max(queue/2, 1))
	})
}

// Permits never run dry and never grow, whatever the receiver queue and the batches.
func TestPermitsNeverRunDry(t *testing.T) {
	t.Parallel()
	const alone, batched = 500, 9_500
	b := broker.Broker(t)
	n := parsed(t, name(t))
	peer := raw(t, b)
	b.CreateTopic(n.String())
	queues := []int{1, 10, 1000}
	for _, queue := range queues {
		for _, typ := range []wire.SubscriptionType{wire.Shared, wire.Exclusive} {
			b.CreateSubscription(n.String(), fmt.Sprint(typeName(typ), queue))
		}
	}
	publishAll(t, peer, n, 0, alone, pulsar.ProducerOptions{DisableBatching: true})
	publishAll(t, peer, n, alone, batched, pulsar.ProducerOptions{BatchingMaxMessages: 1000, BatchingMaxPublishDelay: time.Second})
	for _, queue := range queues {
		for _, typ := range []wire.SubscriptionType{wire.Shared, wire.Exclusive} {
			t.Run(fmt.Sprint(typeName(typ), queue), func(t *testing.T) {
				subscription := fmt.Sprint(typeName(typ), queue)
				cfg := config(connected(t, b), subscription, n)
				cfg.Type, cfg.ReceiverQueue = typ, queue
				f, err := Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer closed(t, f)
				y := &tally{t: t, f: f, last: -1, ordered: true}
				y.read(alone + batched)
				permits(t, b, n, subscription, queue)
				b.AwaitBacklog(n.String(), subscription, 0)
				if y.count != alone+batched {
					t.Errorf("%d messages came, want %d", y.count, alone+batched)
				}
			})
		}
	}
}

// publishAll publishes from, from+1, ...
func publishAll(t *testing.T, peer pulsar.Client, n topic.Name, from, count int, o pulsar.ProducerOptions) {
	t.Helper()
	o.Topic, o.MaxPendingMessages, o.SendTimeout = n.String(), 20_000, -1
	p, err := peer.CreateProducer(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range count {
		p.SendAsync(t.Context(), &pulsar.ProducerMessage{Payload: fmt.Appendf(nil, "m%d", from+i)}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := p.FlushWithCtx(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, f *Feed) {
	t.Helper()
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Entries of which some messages are acked take fewer permits: after many of them are
// sent again the broker has as many as before.
func TestPermitsOfAckedParts(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	const queue, batch = 20, 10
	cfg := config(connected(t, b), "s", n)
	cfg.ReceiverQueue = queue
	f, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, f)
	publishAll(t, raw(t, b), n, 0, batch, pulsar.ProducerOptions{BatchingMaxMessages: batch, BatchingMaxPublishDelay: time.Minute})
	var again []wire.MessageID
	var part *Partition
	came := 0
	for round := range 30 {
		for want := batch; want > 0; {
			got := within(t, "the batch", f.Batches())
			part = got.Partition
			again = append(again[:0], got.Messages[0].ID)
			if int(got.Messages[0].ID.Size) != batch {
				t.Fatalf("a batch of %d", got.Messages[0].ID.Size)
			}
			if round > 0 {
				want = batch / 2
			}
			came += len(got.Messages)
			want -= len(got.Messages)
			f.Release(got)
		}
		if round == 0 {
			half := wire.Acked{Ledger: again[0].Ledger, Entry: again[0].Entry, Left: []uint64{1<<batch - 1<<(batch/2)}, Size: batch}
			if err := part.Ack([]wire.Acked{half}); err != nil {
				t.Fatal(err)
			}
		}
		part.Nack(again)
	}
	within(t, "the batch", f.Batches())
	permits(t, b, n, "s", queue)
	if want := batch + 29*batch/2; came != want {
		t.Errorf("%d messages came, want %d", came, want)
	}
}

// The broker sends no more than the receiver queue while nothing is taken, and what it
// sent before a connection was lost does not count behind it.
func TestFlowAfterReconnect(t *testing.T) {
	t.Parallel()
	for _, queue := range []int{1, 10, 1000} {
		t.Run(fmt.Sprint(queue), func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			p := proxy.Start(t, b.Address())
			n := parsed(t, name(t))
			cfg := config(connectedTo(t, p.URL(), b.Token("admin")), "s", n)
			cfg.ReceiverQueue = queue
			f := opened(t, cfg)
			f.pause()
			const count = 2000
			publishAll(t, raw(t, b), n, 0, count, pulsar.ProducerOptions{DisableBatching: true})
			for i := range 3 {
				p.Await(proxy.ToClient, proxy.Message, (i+1)*queue)
				epoch := f.all()[0].Epoch()
				p.Cut()
				eventually(t, "another consumer", func() bool { return f.all()[0].Epoch() > epoch && f.all()[0].current() != nil })
			}
			p.Await(proxy.ToClient, proxy.Message, 4*queue)
			if sent := p.Count(proxy.ToClient, proxy.Message); sent > 4*queue {
				t.Errorf("%d messages came to 4 consumers with a queue of %d that nobody reads", sent, queue)
			}
			f.read()
			eventually(t, "all messages", func() bool { return f.got("m") == count })
			b.AwaitBacklog(n.String(), "s", 0)
		})
	}
}
