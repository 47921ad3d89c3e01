// SPDX-License-Identifier: Apache-2.0

package message

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a message as the client delivers it.
type sample struct {
	pulsar.Message

	id          pulsar.MessageID
	payload     []byte
	properties  map[string]string
	key         string
	orderingKey string
	event       time.Time
	published   time.Time
}

func (s *sample) ID() pulsar.MessageID          { return s.id }
func (s *sample) Payload() []byte               { return s.payload }
func (s *sample) Properties() map[string]string { return s.properties }
func (s *sample) Key() string                   { return s.key }
func (s *sample) OrderingKey() string           { return s.orderingKey }
func (s *sample) EventTime() time.Time          { return s.event }
func (s *sample) PublishTime() time.Time        { return s.published }

// batched is an id of a message in a batch, which the client's own constructor cannot
// make.
type batched struct {
	pulsar.MessageID
	size int32
}

func (b batched) BatchSize() int32 { return b.size }

// source is partition 3 of public/default/orders, subscribed as "orders".
func source() *Source {
	return NewSource(topic.Name{Tenant: "public", Namespace: "default", Local: "orders", Partition: 3}, "orders")
}

func none(ledger, entry int64) pulsar.MessageID {
	return batched{pulsar.NewMessageID(ledger, entry, 0, 0), 1}
}

// pairs are the headers of name, value, name, value ...
func pairs(texts ...string) core.Headers {
	h := core.Headers{}
	for i := 0; i < len(texts); i += 2 {
		h = append(h, core.Header{Name: texts[i], Value: []byte(texts[i+1])})
	}
	return h
}

// sorted are properties as text.
func sorted(properties map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		out = append(out, k+"="+properties[k])
	}
	return out
}
