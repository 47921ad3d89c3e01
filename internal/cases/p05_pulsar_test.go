// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"strconv"
	"testing"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// P-05: a message that ends the process each time does not keep the others from
// being handled, as several are in work at a time. Such an end is no counted attempt:
// the cap does not end it, as docs/pulsar.md says; a handler that fails in order does.
func TestP05HostDiesOnTheMessage(t *testing.T) {
	t.Parallel()
	const (
		good        = 20
		least, most = 3, 100 // starts: the others are handled in some of them
	)
	b := pulsarShared.Broker(t)
	peer := newPulsarPeer(t, b)
	topic, dead := topicsOf(t)+"t", topicsOf(t)+"q"
	b.CreateSubscription(topic, pulsarSub)
	var ms []*lib.ProducerMessage
	for i := range good + 1 {
		script := "ack"
		if i == good/2 {
			script = "exit 100ms"
		}
		ms = append(ms, &lib.ProducerMessage{Payload: []byte(strconv.Itoa(i)), Properties: map[string]string{scriptHeader: script}})
	}
	peer.put(lib.ProducerOptions{Topic: topic, DisableBatching: true}, ms...)
	handled, bombs := map[string]int{}, 0
	starts := 0
	for ; starts < least || len(handled) < good && starts < most; starts++ {
		p := startChild(t, childConfig{
			Endpoints: []childEndpoint{pulsarEndpoint(t, b)},
			Subscriptions: []childSubscription{{
				From: "in", Name: topic, Cap: 3, Dead: dead, Workers: 4, Options: fromEarliest(settings.TypeShared),
			}},
		}, nil)
		for e := range p.events {
			switch {
			case e.Kind != "run":
			case e.Payload == strconv.Itoa(good/2):
				if bombs++; e.Attempt != 1 {
					t.Errorf("after an end of the process it is attempt %d: a crash is counted", e.Attempt)
				}
			default:
				handled[e.Payload]++
			}
		}
		if status := p.status(); status != 3 {
			t.Fatalf("status %d, want that of the handler", status)
		}
		b.AwaitConsumers(topic, pulsarSub, 0)
	}
	if len(handled) != good || bombs != starts {
		t.Errorf("%d messages were handled, want %d; %d ends, want %d", len(handled), good, bombs, starts)
	}
	b.AwaitBacklog(topic, pulsarSub, 1)
	if letters := peer.read(dead); len(letters) > 0 {
		t.Errorf("dead letters: %v", letters)
	}
}
