// SPDX-License-Identifier: Apache-2.0

package message

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// source is partition 3 of public/default/orders, subscribed as "orders".
func source() *Source {
	return NewSource(topic.Name{Tenant: "public", Namespace: "default", Local: "orders", Partition: 3}, "orders")
}

func none(ledger, entry int64) wire.MessageID {
	return wire.MessageID{Ledger: ledger, Entry: entry, Batch: wire.NoBatch}
}

// properties are those of name, value, name, value ...
func properties(texts ...string) []wire.Property {
	var ps []wire.Property
	for i := 0; i < len(texts); i += 2 {
		ps = append(ps, wire.Property{Name: []byte(texts[i]), Value: []byte(texts[i+1])})
	}
	return ps
}

// pairs are the headers of name, value, name, value ...
func pairs(texts ...string) core.Headers {
	h := core.Headers{}
	for i := 0; i < len(texts); i += 2 {
		h = append(h, core.Header{Name: texts[i], Value: []byte(texts[i+1])})
	}
	return h
}

// listed are properties as text.
func listed(properties []wire.OutgoingProperty) []string {
	var out []string
	for _, p := range properties {
		out = append(out, p.Name+"="+string(p.Value))
	}
	return out
}
