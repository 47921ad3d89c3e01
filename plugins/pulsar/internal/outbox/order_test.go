// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
)

// deduplicated returns a topic whose broker drops what it has already, with a
// subscription.
func deduplicated(t *testing.T, b *pulsarbroker.Broker) string {
	t.Helper()
	namespace := "public/" + clean(t.Name())
	b.CreateNamespace(namespace)
	b.Deduplicate(namespace)
	b.CreateTopic(namespace + "/t")
	b.CreateSubscription(namespace+"/t", "reader")
	return namespace + "/t"
}

// exactly wants the numbers up to n in a topic, in order, and then nothing more.
func exactly(t *testing.T, k *kit, b *pulsarbroker.Broker, from string, n int) {
	t.Helper()
	if x := k.one(from, "end"); x.Status != pluginapi.ReceiptConfirmed {
		t.Fatal(x.Status, x.Fault)
	}
	c, err := peer(t, b).Subscribe(pulsar.ConsumerOptions{Topic: from, SubscriptionName: "reader", Type: pulsar.Exclusive})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, m := range receive(t, c, n+1) {
		want := fmt.Sprint(i)
		if i == n {
			want = "end"
		}
		if got := string(m.Payload()); got != want {
			t.Fatalf("message %d is %q", i, got)
		}
	}
}

// With deduplication connections that are cut cost no message, store none twice, and
// leave all in order.
func TestCutsWithDeduplication(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{0, 7} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			k, p := behind(t, batches(batch))
			b := broker.Broker(t)
			to, r := deduplicated(t, b), newReceipts(t)
			for i, at := range []proxy.Place{proxy.Behind, proxy.Before, proxy.Inside} {
				p.CutAt(proxy.ToServer, proxy.Send, 40+60*i, at)
				p.CutAt(proxy.ToClient, proxy.SendReceipt, 20+50*i, at)
			}
			const n = 1500
			for i := range n {
				if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
					t.Fatal(f)
				}
			}
			r.confirmed(n)
			if p.Accepted() < 4 {
				t.Errorf("%d connections: nothing was cut", p.Accepted())
			}
			exactly(t, k, b, to, n)
		})
	}
}

func batches(messages int) func(*outbox.Config) {
	return func(c *outbox.Config) {
		if messages > 0 {
			c.Batch, c.BatchMessages = 2*time.Millisecond, messages
		}
	}
}

// A broker that is killed amid messages costs none of them, stores none twice, and
// has all in order when it is back.
func TestKilledWithDeduplication(t *testing.T) {
	t.Parallel()
	broker.Broker(t) // serves first: one broker starts at a time
	b := pulsarbroker.Start(t, pulsarbroker.Config{})
	to := deduplicated(t, b)
	k := open(t, b, timeout(2*patience)) // the broker starts meanwhile
	r := newReceipts(t)
	const n, window, kill = 3000, 500, 1000
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	free := make(chan struct{}, window)
	done := func(i int, x pluginapi.Receipt) {
		r.done(i, x)
		<-free
	}
	for i := range n {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
		if f := k.add(i, to, fmt.Sprint(i), done); f != nil {
			t.Fatal(f)
		}
		if i == kill {
			b.Kill()
			b.Start()
		}
	}
	for i, x := range r.await(n) {
		if x.Status != pluginapi.ReceiptConfirmed {
			t.Fatalf("message %d: %v, %v", i, x.Status, x.Fault)
		}
	}
	exactly(t, k, b, to, n)
}

// A message that was written, and then waits to be written again, is unknown when its
// time is over, and is not stored later.
func TestGivenUpBetweenConnections(t *testing.T) {
	t.Parallel()
	k, p := behind(t, timeout(hasty))
	b := broker.Broker(t)
	to, r := name(t, "t"), newReceipts(t)
	k.warm(to)
	stored := b.Stats(to).MsgInCounter
	p.Stall(proxy.ToServer)
	if f := k.post(r, 0, to, "given up"); f != nil {
		t.Fatal(f)
	}
	k.box.AwaitSent(t, 1)
	p.Refuse()
	p.Cut()
	k.box.AwaitDown(t)
	if f := k.post(r, 1, to, "not sent"); f != nil {
		t.Fatal(f)
	}
	got := r.await(2)
	for i, want := range []pluginapi.ReceiptStatus{pluginapi.ReceiptUnknown, pluginapi.ReceiptRefused} {
		if x := got[i]; x.Status != want || !x.Fault.Transient {
			t.Errorf("message %d: %v, %+v", i, x.Status, x.Fault)
		}
	}
	p.Resume()
	k.warm(to)
	if n := b.Stats(to).MsgInCounter - stored; n != 1 {
		t.Errorf("%d messages were stored", n)
	}
}
