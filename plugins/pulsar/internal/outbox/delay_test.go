// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
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
	r := newReceipts(t)
	post := func(i int, payload string, after time.Duration) (began time.Time) {
		began = time.Now()
		if f := k.send(r, i, to, wire.Outgoing{Payload: []byte(payload), DeliverAt: began.Add(after).UnixMilli()}); f != nil {
			t.Fatal(f)
		}
		return began
	}
	post(0, "far", 24*time.Hour)
	began := post(1, "soon", delay)
	for kind, want := range map[pulsar.SubscriptionType]string{pulsar.Exclusive: "far", pulsar.Shared: "soon", pulsar.KeyShared: "soon"} {
		m := receive(t, consumers[kind], 1)[0]
		if got := string(m.Payload()); got != want {
			t.Errorf("a subscription of type %d has %q first, want %q", kind, got, want)
		}
		if took := time.Since(began); want == "soon" && took < delay-tick {
			t.Errorf("a subscription of type %d has it after %v", kind, took)
		}
	}
}
