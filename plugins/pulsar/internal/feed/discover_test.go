// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// P-13: partitions that are added are read from their first message, and the others go
// on.
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := name(t)
	full := "public/default/" + n
	b.CreatePartitioned(full, 2)
	cfg := config(connected(t, b), "s", parsed(t, n))
	cfg.Earliest = false  // it concerns the partitions that there are at the start
	cfg.Discovery = never // the test looks by itself, when all is published
	f := opened(t, cfg)
	peer := raw(t, b)
	publish(t, producer(t, peer, n), "before-", 20)
	b.UpdatePartitions(full, 4)
	publish(t, producer(t, peer, n), "after-", 100)
	if err := f.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all messages", func() bool { return f.got("before-") == 20 && f.got("after-") == 100 })
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.order) != 4 {
		t.Errorf("read from %d partitions, want 4", len(f.order))
	}
}

// A pattern reads what matches with the whole name, topics that come later from their
// first message, and no more what is gone.
func TestPattern(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	space := "public/" + strings.ToLower(name(t))
	b.CreateNamespace(space)
	b.CreateTopic(space + "/orders-eu")
	b.CreateTopic(space + "/old-orders-eu")
	pattern, err := topic.ParsePattern(space + "/orders-.*")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(connected(t, b), "s")
	cfg.Pattern = &pattern
	f := opened(t, cfg)
	peer := raw(t, b)
	publish(t, producer(t, peer, space+"/orders-eu"), "eu-", 5)
	publish(t, producer(t, peer, space+"/old-orders-eu"), "old-", 5)
	b.CreatePartitioned(space+"/orders-us", 2)
	publish(t, producer(t, peer, space+"/orders-us"), "us-", 10)
	eventually(t, "what matches", func() bool { return f.got("eu-") == 5 && f.got("us-") == 10 })
	f.mu.Lock()
	if p := f.from["us-0"]; p.As != "persistent://"+space+"/orders-us" {
		t.Errorf("a topic of a pattern is subscribed as %q, want its full name", p.As)
	}
	f.mu.Unlock()
	if n := f.got("old-"); n != 0 {
		t.Errorf("%d messages of a topic that matches in part", n)
	}
}

// A pattern that matches nothing yet is a warning, and waits.
func TestPatternMatchesNothingYet(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	space := "public/" + strings.ToLower(name(t))
	b.CreateNamespace(space)
	pattern, err := topic.ParsePattern(space + "/.*")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(connected(t, b), "s")
	cfg.Pattern = &pattern
	cfg.Earliest = false
	f := opened(t, cfg)
	if !strings.Contains(f.log.String(), "no topic matches the pattern yet") {
		t.Errorf("no warning:\n%s", f.log)
	}
	b.CreateTopic(space + "/first")
	publish(t, producer(t, raw(t, b), space+"/first"), "m", 3)
	eventually(t, "the new topic's messages", func() bool { return f.got("m") == 3 })
}

// P-14: a topic is deleted under the subscription, and made again after a while.
func TestTopicMadeAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		partitions int
	}{{"plain", 0}, {"partitioned", 3}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			n := name(t)
			full := "public/default/" + n
			create, remove := func() { b.CreateTopic(full) }, func() { b.Delete(full) }
			if tt.partitions > 0 {
				create, remove = func() { b.CreatePartitioned(full, tt.partitions) }, func() { b.DeletePartitioned(full) }
			}
			create()
			f := opened(t, config(connected(t, b), "s", parsed(t, n)))
			peer := raw(t, b)
			p := producer(t, peer, n)
			publish(t, p, "before-", 10)
			eventually(t, "the first messages", func() bool { return f.got("before-") == 10 })
			p.Close()
			remove()
			// The case's pause, shortened: the subscription has to live without its topic.
			eventually(t, "a line about the topic", func() bool { return strings.Contains(f.log.String(), "cannot be read for now") })
			create()
			publish(t, producer(t, peer, n), "after-", 10)
			eventually(t, "messages of the new topic", func() bool { return f.got("after-") == 10 })
		})
	}
}

// A partition that cannot be read touches no other.
func TestOnePartitionFails(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := name(t)
	full := "public/default/" + n
	b.CreatePartitioned(full, 1)
	cfg := config(connected(t, b), "s", parsed(t, n))
	cfg.Discovery = never // the test looks by itself
	f := opened(t, cfg)
	b.UpdatePartitions(full, 2)
	// Another has the new partition's subscription for itself.
	peer := raw(t, b)
	holder, err := peer.Subscribe(pulsar.ConsumerOptions{Topic: n + "-partition-1", SubscriptionName: "s", Type: pulsar.Exclusive})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	p0, p1 := producer(t, peer, n+"-partition-0"), producer(t, peer, n+"-partition-1")
	publish(t, p1, "one-", 3)
	for i := range 5 {
		publish(t, p0, fmt.Sprintf("zero-%d-", i), 1)
	}
	eventually(t, "messages of the other partition", func() bool { return f.got("zero-") == 5 })
	eventually(t, "a line about it", func() bool { return strings.Contains(f.log.String(), "cannot be read for now") })
	holder.Close()
	eventually(t, "messages of the partition", func() bool { return f.got("one-") == 3 })
}

// A topic that is deleted under its consumers stays deleted, for all their tries.
func TestDeletedTopicStaysDeleted(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int{"plain": 0, "partitioned": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			p := proxy.Start(t, b.Address())
			space := "public/deleted-" + name
			b.CreateNamespace(space)
			n := parsed(t, space+"/orders")
			remove := func() { b.Delete(n.String()) }
			if partitions > 0 {
				b.CreatePartitioned(n.String(), partitions)
				remove = func() { b.DeletePartitioned(n.String()) }
			}
			cfg := config(connectedTo(t, p.URL(), b.Token("admin")), "s", n)
			cfg.Discovery = 100 * time.Millisecond
			f := opened(t, cfg)
			remove()
			eventually(t, "a line about it", func() bool { return strings.Contains(f.log.String(), "cannot be read for now") })
			p.Await(proxy.ToServer, proxy.Partitions, p.Count(proxy.ToServer, proxy.Partitions)+10)
			if got := b.Topics(space); len(got) > 0 {
				t.Errorf("there are %q", got)
			}
			if _, err := f.Client.Existing(t.Context(), n); client.Explain("", cmp.Or(err, errClosed)).Code != core.FaultNotFound {
				t.Errorf("the topic is there: %v", err)
			}
			// What its consumers are refused is that it is not there.
			conn, err := f.Client.Broker(t.Context(), n.String())
			if err == nil {
				_, err = conn.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, number uint64) []byte {
					return wire.AppendSubscribe(dst, number, wire.Subscribe{ID: 1 << 20, Topic: n.String(), Subscription: "s", Type: wire.Shared})
				})
			}
			if err == nil || client.Explain("", err).Code != core.FaultNotFound {
				t.Errorf("subscribed to: got %v", err)
			}
		})
	}
}
