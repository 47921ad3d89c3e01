// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Batches of a foreign producer, on brokers that keep acks of single messages of a
// batch and on those that do not.
func TestBatches(t *testing.T) {
	for _, indexes := range []bool{true, false} {
		t.Run(fmt.Sprintf("indexes %v", indexes), func(t *testing.T) {
			b := broker.Broker(t)
			if indexes {
				b = pulsarbroker.Start(t, pulsarbroker.Config{Lines: []string{"acknowledgmentAtBatchIndexLevelEnabled=true"}})
			}
			for name, kind := range types {
				if kind == wire.Failover {
					continue // as exclusive, and slow to begin
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					t.Run("acks in any order", func(t *testing.T) { batchAnyOrder(t, b, kind) })
					t.Run("retry of one", func(t *testing.T) { batchRetryOne(t, b, kind) })
					t.Run("retry before the others are acked", func(t *testing.T) { batchRetryFirst(t, b, kind) })
					if counts(kind) {
						t.Run("count beside acks", func(t *testing.T) { batchCount(t, b, kind) })
						t.Run("retries of all", func(t *testing.T) { batchRetriesOfAll(t, b, kind) })
					}
					t.Run("a part and a restart", func(t *testing.T) { batchRestart(t, b, kind, indexes) })
				})
			}
		})
	}
}

// entry publishes one batch and returns its deliveries.
func (k *kit) entry(n int) []delivery {
	k.tb.Helper()
	k.publish(0, n, true)
	ds := k.take(n)
	if st := k.b.Stats(k.topic); st.Subscriptions["s"].Backlog != 1 {
		k.tb.Fatalf("the batch has %d entries", st.Subscriptions["s"].Backlog)
	}
	return ds
}

func texts(ds []delivery) string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = d.text
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func batchAnyOrder(t *testing.T, b *pulsarbroker.Broker, kind wire.SubscriptionType) {
	k := open(t, b, options{kind: kind})
	ds := k.entry(5)
	for _, i := range []int{3, 0, 4, 1} {
		k.ack(ds[i])
	}
	k.quiet(50 * time.Millisecond)
	k.backlog(1)
	k.ack(ds[2])
	k.backlog(0)
	k.close()
	next := open(t, b, options{kind: kind, topic: k.topic})
	next.quiet(100 * time.Millisecond)
}

// A nack brings the whole batch; only what is to come again is delivered.
func batchRetryOne(t *testing.T, b *pulsarbroker.Broker, kind wire.SubscriptionType) {
	k := open(t, b, options{kind: kind})
	ds := k.entry(5)
	k.ack(ds[0], ds[1], ds[2], ds[4])
	d := ds[3]
	for n := range uint32(3) {
		k.requeue(0, d)
		d = k.next()
		if d.text != "m3" || counts(kind) && d.attempt != n+2 {
			t.Errorf("%q came, attempt %d, want m3, attempt %d", d.text, d.attempt, n+2)
		}
		k.quiet(30 * time.Millisecond)
	}
	k.ack(d)
	k.backlog(0)
}

func batchRetryFirst(t *testing.T, b *pulsarbroker.Broker, kind wire.SubscriptionType) {
	k := open(t, b, options{kind: kind})
	ds := k.entry(5)
	k.ack(ds[0])
	k.requeue(0, ds[4])
	d := k.next()
	if d.text != "m4" {
		t.Errorf("%q came, want m4", d.text)
	}
	k.quiet(50 * time.Millisecond)
	k.requeue(0, ds[2])
	if counts(kind) {
		again := k.next()
		if again.text != "m2" {
			t.Errorf("%q came, want m2", again.text)
		}
		k.ack(ds[1], ds[3], again, d)
	} else {
		again := k.take(3)
		if texts(again) != "m2 m3 m4" {
			t.Errorf("%s came, want m2 m3 m4", texts(again))
		}
		k.ack(append(again, ds[1])...)
	}
	k.backlog(0)
	k.quiet(50 * time.Millisecond)
}

// Acks of the others do not take the count back.
func batchCount(t *testing.T, b *pulsarbroker.Broker, kind wire.SubscriptionType) {
	k := open(t, b, options{kind: kind})
	ds := k.entry(5)
	d := ds[0]
	for n := range 4 {
		k.requeue(0, d)
		k.ack(ds[n+1])
		d = k.next()
		if d.text != "m0" || d.attempt != uint32(n+2) {
			t.Errorf("%q came, attempt %d, want m0, attempt %d", d.text, d.attempt, n+2)
		}
	}
	k.ack(d)
	k.backlog(0)
}

// Messages of a batch that fail one after the other come again together, each at its
// second attempt: they do not use up each other's.
func batchRetriesOfAll(t *testing.T, b *pulsarbroker.Broker, kind wire.SubscriptionType) {
	k := open(t, b, options{kind: kind, batchWait: time.Minute})
	ds := k.entry(5)
	for n := uint32(2); n <= 3; n++ {
		k.ack(ds[0])
		for i, d := range ds[1:] {
			k.requeue(0, d)
			if i < len(ds)-2 {
				k.quiet(20 * time.Millisecond)
			}
		}
		ds = k.take(len(ds) - 1)
		for _, d := range ds {
			if d.attempt != n {
				t.Errorf("%s came at attempt %d, want %d", d.text, d.attempt, n)
			}
		}
	}
	k.ack(ds...)
	k.backlog(0)
}

// What is acked of a batch outlives the process where the broker keeps it; what is not
// comes again everywhere.
func batchRestart(t *testing.T, b *pulsarbroker.Broker, kind wire.SubscriptionType, indexes bool) {
	k := open(t, b, options{kind: kind})
	ds := k.entry(5)
	k.ack(ds[0], ds[2], ds[4])
	k.close()
	next := open(t, b, options{kind: kind, topic: k.topic})
	n := 5
	if indexes {
		n = 2
	}
	again := next.take(n)
	if indexes && texts(again) != "m1 m3" {
		t.Errorf("%s came again, want m1 m3", texts(again))
	}
	next.quiet(30 * time.Millisecond)
	next.ack(again...)
	next.backlog(0)
}
