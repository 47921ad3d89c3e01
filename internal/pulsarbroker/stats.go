// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"context"
	"net/http"
	"time"
)

// Stats are those of a topic.
type Stats struct {
	MsgInCounter  int64                   `json:"msgInCounter"`
	BytesIn       int64                   `json:"bytesInCounter"`
	BacklogSize   int64                   `json:"backlogSize"`
	Publishers    []Publisher             `json:"publishers"`
	Subscriptions map[string]Subscription `json:"subscriptions"`
}

// Publisher is a producer of a topic.
type Publisher struct {
	Name    string `json:"producerName"`
	Address string `json:"address"`
}

// Subscription is one of a topic.
type Subscription struct {
	Type      string     `json:"type"` // "Shared", "Exclusive", "Failover", "Key_Shared"
	Backlog   int64      `json:"msgBacklog"`
	Unacked   int64      `json:"unackedMessages"`
	Durable   bool       `json:"durable"`
	Active    string     `json:"activeConsumerName"`
	Consumers []Consumer `json:"consumers"`
	Delayed   int64      `json:"msgDelayed"`
	Redeliver float64    `json:"msgRateRedeliver"`
}

// Consumer is one of a subscription.
type Consumer struct {
	Name    string `json:"consumerName"`
	Address string `json:"address"`
	Permits int64  `json:"availablePermits"`
	Unacked int64  `json:"unackedMessages"`
	Sent    int64  `json:"msgOutCounter"`
	Acked   int64  `json:"messageAckCounter"`
}

// Stats returns those of a topic without partitions, or of a partition.
func (b *Broker) Stats(topic string) Stats {
	b.tb.Helper()
	stats, err := b.TryStats(topic)
	if err != nil {
		b.tb.Fatal(err)
	}
	return stats
}

// TryStats is Stats for a topic that may not be there.
func (b *Broker) TryStats(topic string) (Stats, error) {
	var s Stats
	err := b.TryAdmin(http.MethodGet, path(topic)+"/stats?getPreciseBacklog=true", nil, &s)
	return s, err
}

// Backlog returns how many messages of a topic a subscription has not acked.
func (b *Broker) Backlog(topic, subscription string) int64 {
	b.tb.Helper()
	s, ok := b.Stats(topic).Subscriptions[subscription]
	if !ok {
		b.tb.Fatalf("%s has no subscription %s", topic, subscription)
	}
	return s.Backlog
}

// Await waits until ok says so of a topic's stats, and returns them. The topic may
// come while it waits.
func (b *Broker) Await(topic, what string, ok func(Stats) bool) Stats {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.tb.Context(), Limit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		s, err := b.TryStats(topic)
		if err == nil && ok(s) {
			return s
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			b.tb.Fatalf("never: %s: %+v, %v", what, s, err)
		}
	}
}

// AwaitBacklog waits until a subscription has n messages that are not acked.
func (b *Broker) AwaitBacklog(topic, subscription string, n int64) {
	b.tb.Helper()
	b.Await(topic, "the backlog", func(s Stats) bool {
		sub, ok := s.Subscriptions[subscription]
		return ok && sub.Backlog == n
	})
}

// AwaitConsumers waits until a subscription has n consumers.
func (b *Broker) AwaitConsumers(topic, subscription string, n int) {
	b.tb.Helper()
	b.Await(topic, "the consumers", func(s Stats) bool { return len(s.Subscriptions[subscription].Consumers) == n })
}
