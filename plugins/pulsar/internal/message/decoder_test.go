// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

func TestDecode(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, tt := range []struct {
		name string
		msg  sample
		want core.Headers
	}{
		{"nothing", sample{}, nil},
		{"the event time 0 is none", sample{event: time.UnixMilli(0)}, nil},
		{
			"properties by name", sample{properties: map[string]string{"b": "2", "X-A": "\xff", "a": ""}},
			pairs("X-A", "\xff", "a", "", "b", "2"),
		},
		{
			"headers of its own first", sample{key: "k", orderingKey: "o", event: at, properties: map[string]string{"a": "1"}},
			pairs("partition-key", "k", "pulsar-ordering-key", "o", "pulsar-event-time", "1700000000123", "a", "1"),
		},
		{
			"properties that contradict them are left out",
			sample{key: "k", orderingKey: "o", event: at, properties: map[string]string{"Partition-Key": "x", "pulsar-ordering-key": "x", "pulsar-event-time": "1", "a": "1"}},
			pairs("partition-key", "k", "pulsar-ordering-key", "o", "pulsar-event-time", "1700000000123", "a", "1"),
		},
		{
			"and stay where there is none", sample{properties: map[string]string{"partition-key": "x"}},
			pairs("partition-key", "x"),
		},
	} {
		tt.msg.id, tt.msg.payload, tt.msg.published = none(9, 7), []byte("hello"), at
		var d Decoder
		got := d.Decode(source(), &tt.msg)
		want := core.Message{Name: "orders", Headers: tt.want, Payload: []byte("hello")}
		if len(got.Message.Headers) == 0 {
			got.Message.Headers = nil
		}
		if d := cmp.Diff(got.Message, want); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if want := (topic.ID{Ledger: 9, Entry: 7, Partition: 3, Batch: topic.NoBatch}); got.ID != want || !got.PublishedAt.Equal(at) {
			t.Errorf("%s: id %v at %v", tt.name, got.ID, got.PublishedAt)
		}
		n, id, err := topic.DecodePosition(got.Position)
		if err != nil || n != source().Topic || id != got.ID {
			t.Errorf("%s: the position is %v %v, %v", tt.name, n, id, err)
		}
	}
}

// A message of a batch has the batch's index; one alone in its entry has none.
func TestSourceID(t *testing.T) {
	for _, tt := range []struct {
		id   pulsar.MessageID
		want topic.ID
	}{
		{none(5, 6), topic.ID{Ledger: 5, Entry: 6, Partition: 3, Batch: topic.NoBatch}},
		{batched{pulsar.NewMessageID(5, 6, 2, 0), 4}, topic.ID{Ledger: 5, Entry: 6, Partition: 3, Batch: 2}},
		{pulsar.NewMessageID(5, 6, -1, 0), topic.ID{Ledger: 5, Entry: 6, Partition: 3, Batch: topic.NoBatch}},
	} {
		if got := source().ID(tt.id); got != tt.want {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}

// What is decoded lies beside what was decoded before it, also where memory runs out,
// and is used again after Use. The caller may append one header.
func TestDecoderMemory(t *testing.T) {
	var d Decoder
	var m Memory
	for round := range 3 {
		d.Use(&m)
		var all []Delivered
		for i := range 300 {
			msg := &sample{id: none(int64(i), 1), key: fmt.Sprint("k", i), properties: map[string]string{"p": strings.Repeat("v", i)}}
			got := d.Decode(source(), msg)
			got.Message.Headers = append(got.Message.Headers, core.Header{Name: "own", Value: []byte("x")})
			all = append(all, got)
		}
		for i, got := range all {
			want := pairs("partition-key", fmt.Sprint("k", i), "p", strings.Repeat("v", i), "own", "x")
			if d := cmp.Diff(got.Message.Headers, want); d != "" {
				t.Fatalf("round %d, message %d: %s", round, i, d)
			}
			if c, ok := parseCarry(got.Carry); !ok || c.id != got.ID || c.key != fmt.Sprint("k", i) {
				t.Fatalf("round %d, message %d: the carry is %+v, %t", round, i, c, ok)
			}
		}
		m.Spent()
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	var d Decoder
	var m Memory
	s := source()
	msg := &sample{id: none(9, 1), key: "k", payload: make([]byte, 512), properties: map[string]string{"a": "1", "b": "2"}}
	d.Use(&m)
	d.Decode(s, msg)
	if n := testing.AllocsPerRun(100, func() {
		d.Use(&m)
		d.Decode(s, msg)
	}); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	var d Decoder
	var m Memory
	s := source()
	msg := &sample{id: none(9, 1), key: "k", payload: make([]byte, 512), properties: map[string]string{"content-type": "application/json", "x-tenant": "acme"}}
	b.ReportAllocs()
	for b.Loop() {
		d.Use(&m)
		d.Decode(s, msg)
	}
}
