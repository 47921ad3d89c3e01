// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// S-PUL-08, 09, 11: a dead letter keeps properties, keys and event time, says where it
// was read, and has no count of copies.
func TestDeadLetter(t *testing.T) {
	const at = 1_700_000_000_123
	msg := &wire.Message{ID: none(9, 0), Key: []byte("k"), OrderingKey: []byte("o"), EventTime: at, Properties: properties("a", "1")}
	var d Decoder
	got := d.Decode(source(), msg)
	pattern := d.Decode(NewSource(topic.Name{Tenant: "public", Namespace: "default", Local: "orders", Partition: topic.NoPartition}, "persistent://public/default/orders"), msg)
	alone := d.Decode(source(), &wire.Message{ID: none(9, 0)})
	other := []byte("some other endpoint's")
	for _, tt := range []struct {
		name    string
		headers core.Headers
		options Options
		carry   []byte
		want    []string
		key     string
	}{
		{
			"as delivered", append(got.Message.Headers, pairs("x-longshore-attempts", "3", "X-RustStream-Retry-Count", "3")...), Options{}, got.Carry,
			[]string{"a=1", "x-longshore-attempts=3", "REAL_TOPIC=orders", "ORIGIN_MESSAGE_ID=9:0:3"}, "k",
		},
		{
			"the topic in full for a pattern", nil, Options{}, pattern.Carry,
			[]string{"REAL_TOPIC=persistent://public/default/orders", "ORIGIN_MESSAGE_ID=9:0:-1"}, "k",
		},
		{
			"what is there is kept", pairs("REAL_TOPIC", "mine", "ORIGIN_MESSAGE_ID", "mine too"), Options{}, got.Carry,
			[]string{"REAL_TOPIC=mine", "ORIGIN_MESSAGE_ID=mine too"}, "k",
		},
		{
			"options beat the carry", pairs("partition-key", "k"), Options{Key: "k2", OrderingKey: "o", EventTime: time.UnixMilli(at)}, got.Carry,
			[]string{"REAL_TOPIC=orders", "ORIGIN_MESSAGE_ID=9:0:3"}, "k2",
		},
		{
			"of another endpoint", pairs("partition-key", "x", "pulsar-ordering-key", "o", "pulsar-event-time", "1700000000123", "x-ruststream-retry-count", "3"), Options{}, other,
			[]string{"x-ruststream-retry-count=3"}, "x",
		},
	} {
		out := DeadLetter(&core.Message{Name: "dead", Headers: tt.headers, Payload: []byte("p")}, tt.options, tt.carry)
		if d := cmp.Diff(listed(out.Properties), tt.want); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if out.Key != tt.key || out.OrderingKey != "o" || out.EventTime != at || string(out.Payload) != "p" {
			t.Errorf("%s: key %q, ordering key %q, event time %d", tt.name, out.Key, out.OrderingKey, out.EventTime)
		}
	}
	out := DeadLetter(&core.Message{Name: "dead"}, Options{}, alone.Carry)
	if out.Key != "" || out.OrderingKey != "" || out.EventTime != 0 {
		t.Errorf("a message without keys and time has %+v", out)
	}
}

// A key that is too long for a carry is kept by its header.
func TestLongKeyIsNotCarried(t *testing.T) {
	long := strings.Repeat("k", maxCarried+1)
	var d Decoder
	got := d.Decode(source(), &wire.Message{ID: none(9, 0), Key: []byte(long), OrderingKey: []byte(long[:maxCarried])})
	if n := len(got.Carry) + len(got.Position) + len(got.Message.Name); n > 256<<10 {
		t.Errorf("%d bytes beside the message", n)
	}
	out := DeadLetter(&core.Message{Headers: got.Message.Headers}, Options{}, got.Carry)
	if out.Key != long || len(out.OrderingKey) != maxCarried {
		t.Errorf("keys of %d and %d bytes", len(out.Key), len(out.OrderingKey))
	}
}
