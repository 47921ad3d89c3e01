// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Keys go to the partitions that the library chooses, so that a topic with publishers
// of both keeps the order of a key.
func TestRoutesAsTheLibrary(t *testing.T) {
	t.Parallel()
	const keys, partitions = 1000, 7
	b := broker.Broker(t)
	to := name(t, "t")
	b.CreatePartitioned(to, partitions)
	p, err := peer(t, b).CreateProducer(pulsar.ProducerOptions{Topic: to, SendTimeout: -1, DisableBatching: true, MaxPendingMessages: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	key := func(i int) (key, ordering string) {
		key = strings.Repeat(string(rune('a'+i%26)), i%40) + fmt.Sprint("käse-", i)
		if i%3 == 0 {
			ordering = fmt.Sprint(i) + strings.Repeat("\xff", i%5)
		}
		return key, ordering
	}
	var theirs [keys]pulsar.MessageID
	var sent sync.WaitGroup
	for i := range keys {
		k, o := key(i)
		sent.Add(1)
		p.SendAsync(t.Context(), &pulsar.ProducerMessage{Key: k, OrderingKey: o, Payload: []byte("x")}, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			defer sent.Done()
			if theirs[i] = id; err != nil {
				t.Error(err)
			}
		})
	}
	if err := p.FlushWithCtx(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent.Wait()
	for i, id := range theirs {
		k, o := key(i)
		if id == nil {
			t.FailNow()
		} else if got := outbox.Route(k, o, partitions); got != int(id.PartitionIdx()) {
			t.Errorf("key %q, ordering key %q: partition %d, the library's is %d", k, o, got, id.PartitionIdx())
		}
	}
}

// Messages without a key take turns on partitions; with batches each has whole ones.
func TestTurns(t *testing.T) {
	t.Parallel()
	const partitions, each = 3, 20
	for _, batch := range []int{0, 10} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			to := name(t, "t")
			b.CreatePartitioned(to, partitions)
			k := open(t, b, func(c *outbox.Config) {
				if batch > 0 {
					c.Batch, c.BatchMessages = time.Hour, batch
				}
			})
			r := newReceipts(t)
			for i := range partitions * each {
				if f := k.send(r, i, to, wire.Outgoing{Payload: []byte("x")}); f != nil {
					t.Fatal(f)
				}
			}
			counts := make(map[int]int)
			for _, x := range r.confirmed(partitions * each) {
				n, _, err := topic.DecodePosition(x.Position)
				if err != nil {
					t.Fatal(err)
				}
				counts[n.Partition]++
			}
			for i := range partitions {
				if counts[i] != each {
					t.Errorf("partition %d has %d of %d messages", i, counts[i], partitions*each)
				}
			}
		})
	}
}

// A topic gets partitions while it is published to: no message is lost, and each key
// keeps its order in the partition that it is in.
func TestPartitionsAmidMessages(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	to := name(t, "t")
	b.CreatePartitioned(to, 2)
	k := open(t, b, func(c *outbox.Config) { c.Discovery = 20 * 1e6 })
	r := newReceipts(t)
	const keys = 8
	n := 0
	post := func(count int) {
		for range count {
			m := wire.Outgoing{Key: fmt.Sprint("k", n%keys), Payload: fmt.Append(nil, n)}
			if f := k.send(r, n, to, m); f != nil {
				t.Fatal(f)
			}
			n++
		}
	}
	post(200)
	b.UpdatePartitions(to, 5)
	eventually(t, "a key to be in a new partition", func() bool {
		post(keys)
		got := r.await(n)
		at, _, err := topic.DecodePosition(got[n-1].Position)
		if err != nil {
			t.Fatal(got[n-1].Fault, err)
		}
		post(keys)
		return at.Partition >= 2
	})
	post(200)
	r.confirmed(n)
	last := make(map[string]int)
	for _, m := range read(t, b, to, n) {
		var i int
		if _, err := fmt.Sscan(string(m.Payload()), &i); err != nil {
			t.Fatal(err)
		}
		in := fmt.Sprint(m.Key(), " in ", m.ID().PartitionIdx())
		if was, ok := last[in]; ok && i <= was {
			t.Fatalf("key %s: %d comes behind %d", in, i, was)
		}
		last[in] = i
	}
}
