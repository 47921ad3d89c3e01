// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

func TestDecode(t *testing.T) {
	const at = 1_700_000_000_123
	for _, tt := range []struct {
		name string
		msg  wire.Message
		want core.Headers
	}{
		{"nothing", wire.Message{}, nil},
		{"an event time before 1970 is none", wire.Message{EventTime: -1}, nil},
		{
			"properties in their order", wire.Message{Properties: properties("b", "2", "X-A", "\xff", "a", "")},
			pairs("b", "2", "X-A", "\xff", "a", ""),
		},
		{
			"the last value of a name", wire.Message{Properties: properties("b", "1", "a", "2", "b", "3", "B", "4")},
			pairs("b", "3", "a", "2", "B", "4"),
		},
		{
			"but for the mark of an empty message", wire.Message{Properties: properties("x-longshore-empty", "", "a", "1")},
			pairs("a", "1"),
		},
		{
			"headers of its own first", wire.Message{Key: []byte("k"), OrderingKey: []byte("o"), EventTime: at, Properties: properties("a", "1")},
			pairs("partition-key", "k", "pulsar-ordering-key", "o", "pulsar-event-time", "1700000000123", "a", "1"),
		},
		{
			"properties that contradict them are left out",
			wire.Message{Key: []byte("k"), OrderingKey: []byte("o"), EventTime: at, Properties: properties("Partition-Key", "x", "pulsar-ordering-key", "x", "pulsar-event-time", "1", "a", "1")},
			pairs("partition-key", "k", "pulsar-ordering-key", "o", "pulsar-event-time", "1700000000123", "a", "1"),
		},
		{
			"and stay where there is none", wire.Message{Properties: properties("partition-key", "x")},
			pairs("partition-key", "x"),
		},
	} {
		tt.msg.ID, tt.msg.Payload, tt.msg.PublishTime = none(9, 7), []byte("hello"), at
		var d Decoder
		got := d.Decode(source(), &tt.msg)
		want := core.Message{Name: "orders", Headers: tt.want, Payload: []byte("hello")}
		if len(got.Message.Headers) == 0 {
			got.Message.Headers = nil
		}
		if d := cmp.Diff(got.Message, want); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if want := (topic.ID{Ledger: 9, Entry: 7, Partition: 3, Batch: topic.NoBatch}); got.ID != want || got.PublishedAt.UnixMilli() != at {
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
		id   wire.MessageID
		want topic.ID
	}{
		{none(5, 6), topic.ID{Ledger: 5, Entry: 6, Partition: 3, Batch: topic.NoBatch}},
		{wire.MessageID{Ledger: 5, Entry: 6, Batch: 2, Size: 4}, topic.ID{Ledger: 5, Entry: 6, Partition: 3, Batch: 2}},
		{wire.MessageID{Ledger: 5, Entry: 6, Batch: 0, Size: 1}, topic.ID{Ledger: 5, Entry: 6, Partition: 3, Batch: topic.NoBatch}},
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
			msg := &wire.Message{ID: none(int64(i), 1), Key: fmt.Append(nil, "k", i), Properties: properties("p", strings.Repeat("v", i))}
			got := d.Decode(source(), msg)
			got.Message.Headers = append(got.Message.Headers, core.Header{Name: "own", Value: []byte("x")})
			all = append(all, got)
		}
		for i, got := range all {
			want := pairs("partition-key", fmt.Sprint("k", i), "p", strings.Repeat("v", i), "own", "x")
			if d := cmp.Diff(got.Message.Headers, want); d != "" {
				t.Fatalf("round %d, message %d: %s", round, i, d)
			}
			if c, ok := parseCarry(got.Carry); !ok || c.id != got.ID || string(c.key) != fmt.Sprint("k", i) {
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
	msg := &wire.Message{ID: none(9, 1), Key: []byte("k"), Payload: make([]byte, 512), Properties: properties("a", "1", "b", "2")}
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
	msg := &wire.Message{ID: none(9, 1), Key: []byte("k"), Payload: make([]byte, 512), Properties: properties("content-type", "application/json", "x-tenant", "acme")}
	b.ReportAllocs()
	for b.Loop() {
		d.Use(&m)
		d.Decode(s, msg)
	}
}

// A foreign message may have any number of properties, and takes no time for it.
func TestManyProperties(t *testing.T) {
	const n = 200_000
	texts := make([]string, 0, 4*n)
	for i := range n {
		texts = append(texts, fmt.Sprint(i), "first")
	}
	for i := range n {
		texts = append(texts, fmt.Sprint(i), fmt.Sprint("v", i))
	}
	var d Decoder
	got := d.Decode(source(), &wire.Message{ID: none(9, 1), Properties: properties(texts...)})
	again := DeadLetter(&core.Message{Headers: got.Message.Headers}, Options{}, got.Carry)
	if len(got.Message.Headers) != n || len(again.Properties) != n+deadLetterProperties {
		t.Fatalf("%d headers, %d properties, of %d names", len(got.Message.Headers), len(again.Properties), n)
	}
	for i := range n {
		h, p := &got.Message.Headers[i], &again.Properties[i]
		if want := fmt.Sprint("v", i); h.Name != fmt.Sprint(i) || string(h.Value) != want || p.Name != h.Name || string(p.Value) != want {
			t.Fatalf("header %d is %s=%s, property %s=%s", i, h.Name, h.Value, p.Name, p.Value)
		}
	}
}

// What is appended to a value or a payload is not written into what lies behind it.
func TestDecodedIsApart(t *testing.T) {
	frame := []byte("kvalueplothers")
	msg := wire.Message{ID: none(9, 1), Key: frame[:1], Properties: []wire.Property{{Name: []byte("n"), Value: frame[1:6]}}, Payload: frame[6:8]}
	var d Decoder
	got := d.Decode(source(), &msg)
	for _, h := range got.Message.Headers {
		_ = append(h.Value, "!!!"...)
	}
	_ = append(got.Message.Payload, "!!!"...)
	if string(frame) != "kvalueplothers" {
		t.Errorf("the frame has become %q", frame)
	}
}
