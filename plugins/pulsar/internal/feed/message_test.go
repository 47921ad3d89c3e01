// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// What is published as a message comes back as the same one, by way of the broker, in
// batches too; its dead letter says where it was read.
func TestMessagesGoRound(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	peer := raw(t, b)
	for name, batching := range map[string]bool{"alone": false, "batched": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := parsed(t, "public/default/"+name+"-"+t.Name()[:4])
			f := opened(t, config(connected(t, b), "s", n))
			f.ack.Store(false)
			p, err := peer.CreateProducer(pulsar.ProducerOptions{Topic: n.String(), SendTimeout: -1, DisableBatching: !batching, BatchingMaxPublishDelay: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			sent := []core.Message{
				{Name: n.Local, Payload: []byte("a"), Headers: core.Headers{
					{Name: "partition-key", Value: []byte("k")}, {Name: "pulsar-ordering-key", Value: []byte("o")},
					{Name: "pulsar-event-time", Value: []byte("1700000000123")},
					{Name: "", Value: []byte("no name")}, {Name: "X-Tenant", Value: []byte("tab\tand ü")}, {Name: "empty", Value: []byte{}},
				}},
				{Name: n.Local, Payload: []byte("b"), Headers: core.Headers{}},
			}
			for i := range sent {
				out := message.For(&sent[i], message.Options{})
				p.SendAsync(t.Context(), asPeer(&out), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
					if err != nil {
						t.Error(err)
					}
				})
			}
			if err := p.FlushWithCtx(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "both messages", func() bool { return f.got("") == 2 })
			f.mu.Lock()
			defer f.mu.Unlock()
			var d message.Decoder
			for i, m := range f.held {
				got := d.Decode(f.from["a"].Source, &m)
				if d := cmp.Diff(got.Message, sent[i], anyOrder); d != "" {
					t.Errorf("message %d: %s", i, d)
				}
				if in := got.ID.Batch >= 0; in != batching || got.ID.Partition != -1 || time.Since(got.PublishedAt) > patience {
					t.Errorf("message %d has the id %v, at %v", i, got.ID, got.PublishedAt)
				}
				dead := message.DeadLetter(&got.Message, message.Options{}, got.Carry)
				of := asPeer(&dead).Properties
				if of[message.OriginMessageID] != got.ID.String() || of[message.RealTopic] != n.Local {
					t.Errorf("message %d: its dead letter has %v", i, of)
				}
			}
		})
	}
}

// anyOrder leaves the order of headers out: the peer writes properties in any.
var anyOrder = cmpopts.SortSlices(func(a, b core.Header) bool { return a.Name < b.Name })

// asPeer is a message as the library publishes it.
func asPeer(m *wire.Outgoing) *pulsar.ProducerMessage {
	out := &pulsar.ProducerMessage{Payload: m.Payload, Key: m.Key, OrderingKey: m.OrderingKey, Properties: map[string]string{}}
	if m.EventTime > 0 {
		out.EventTime = time.UnixMilli(m.EventTime)
	}
	for _, p := range m.Properties {
		out.Properties[p.Name] = string(p.Value)
	}
	return out
}
