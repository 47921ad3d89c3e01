// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

func TestFor(t *testing.T) {
	const at = 1_700_000_000_123
	for _, tt := range []struct {
		name       string
		headers    core.Headers
		options    Options
		want       wire.Outgoing
		properties []string
	}{
		{name: "nothing"},
		{
			name:       "properties, empty ones too",
			headers:    pairs("X-Tenant", "acme", "empty", "", "grüße", "ß"),
			properties: []string{"X-Tenant=acme", "empty=", "grüße=ß"},
		},
		{
			name:       "the last value of a name",
			headers:    pairs("b", "1", "a", "2", "b", "3"),
			properties: []string{"b=3", "a=2"},
		},
		{
			name:    "headers that are no properties, whatever their case",
			headers: pairs("Partition-Key", "k1", "pulsar-ordering-key", "o1", "PULSAR-EVENT-TIME", "1700000000123"),
			want:    wire.Outgoing{Key: "k1", OrderingKey: "o1", EventTime: at},
		},
		{
			name:       "options beat headers",
			headers:    pairs("partition-key", "k1", "pulsar-ordering-key", "o1", "pulsar-event-time", "1", "a", "b"),
			options:    Options{Key: "k2", OrderingKey: "o2", EventTime: time.UnixMilli(at)},
			want:       wire.Outgoing{Key: "k2", OrderingKey: "o2", EventTime: at},
			properties: []string{"a=b"},
		},
		{
			name:       "what cannot be a time stays a property of a dead letter",
			headers:    pairs("pulsar-event-time", "yesterday"),
			properties: []string{"pulsar-event-time=yesterday"},
		},
	} {
		m := &core.Message{Name: "orders", Headers: tt.headers, Payload: []byte("hello")}
		tt.want.Payload = m.Payload
		got := For(m, tt.options)
		properties := got.Properties
		got.Properties = nil
		if d := cmp.Diff(got, tt.want); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if d := cmp.Diff(listed(properties), tt.properties); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// S-PUL-32, S-PUL-39: what properties cannot carry is refused, naming the header.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers core.Headers
		want    string // "" = it passes
	}{
		{"S-PUL-32 a value", pairs("x-bin", "\xff\xfe"), `header "x-bin": the value is not UTF-8`},
		{"S-PUL-32 a name", pairs("x-\xff", "a"), `the name is not UTF-8`},
		{"S-PUL-32 a key", pairs("partition-key", "\xff"), `header "partition-key": the value is not UTF-8`},
		{"S-PUL-39 twice", pairs("a", "1", "b", "2", "a", "1"), `header "a": it is there twice`},
		{"S-PUL-39 in another case", pairs("X-A", "1", "x-a", "2"), `header "x-a": it is there twice`},
		{"a time", pairs("pulsar-event-time", "2026-01-01"), `header "pulsar-event-time": "2026-01-01" is no time`},
		{"no time", pairs("pulsar-event-time", "0"), `"0" is no time`},
		{"text of any kind", pairs("a", "tab\tand\nline", "b", "\x00", "", "no name", "ü", ""), ""},
		{"nothing", nil, ""},
	} {
		f := Check(&core.Message{Name: "orders", Headers: tt.headers})
		switch {
		case tt.want == "" && f != nil:
			t.Errorf("%s: refused: %v", tt.name, f)
		case tt.want == "":
		case f == nil || f.Code != core.FaultInvalid || f.Transient || !strings.Contains(f.Message, tt.want) || !strings.Contains(f.Message, `publish to "orders"`):
			t.Errorf("%s: got %v, want %q", tt.name, f, tt.want)
		}
	}
}
