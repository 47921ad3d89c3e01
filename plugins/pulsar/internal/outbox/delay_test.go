// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The broker keeps a delayed message from a shared subscription, for as long as was
// asked but for its own tick (here 50 ms), and not from an exclusive one.
func TestDelay(t *testing.T) {
	t.Parallel()
	const delay, tick = 1500 * time.Millisecond, 50 * time.Millisecond
	b := broker.Broker(t)
	k := open(t, b)
	to := name(t, "t")
	c := peer(t, b)
	consumers := make(map[pulsar.SubscriptionType]pulsar.Consumer)
	for _, kind := range []pulsar.SubscriptionType{pulsar.Shared, pulsar.KeyShared, pulsar.Exclusive} {
		s, err := c.Subscribe(pulsar.ConsumerOptions{Topic: to, SubscriptionName: string('a' + rune(kind)), Type: kind})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		consumers[kind] = s
	}
	began, r := time.Now(), newReceipts(t)
	if f := k.send(r, 0, to, wire.Outgoing{Payload: []byte("x"), DeliverAt: began.Add(delay).UnixMilli()}); f != nil {
		t.Fatal(f)
	}
	for _, kind := range []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared, pulsar.KeyShared} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		m, err := consumers[kind].Receive(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		_ = consumers[kind].Ack(m)
		took := time.Since(began)
		if waits := kind != pulsar.Exclusive; waits != (took >= delay-tick) {
			t.Errorf("a subscription of type %d has it after %v", kind, took)
		}
	}
}
