// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// entries counts the messages of each entry that receipts name.
func entries(t *testing.T, got map[int]pluginapi.Receipt) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for i, x := range got {
		_, id, err := decode(x.Position)
		if err != nil {
			t.Fatalf("message %d: %v, %v", i, x.Fault, err)
		}
		counts[fmt.Sprint(id.Ledger, ":", id.Entry)]++
	}
	return counts
}

// Batches that are larger than the broker takes are split, and a message that is
// larger by itself is refused: the connection lives on.
func TestBatchesOverTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 20_000
	broker.Broker(t) // serves first: one broker starts at a time
	b := pulsarbroker.Start(t, pulsarbroker.Config{Lines: []string{fmt.Sprint("maxMessageSize=", limit)}})
	k := open(t, b, func(c *outbox.Config) { c.Batch, c.BatchMessages = 500*time.Millisecond, 1000 })
	to, r := name(t, "t"), newReceipts(t)
	const n, large = 60, 30
	for i := range n {
		size := 1500
		if i == large {
			size = limit
		}
		if f := k.send(r, i, to, wire.Outgoing{Payload: bytes.Repeat([]byte{byte(i)}, size)}); f != nil {
			t.Fatal(f)
		}
	}
	got := r.await(n)
	if x := got[large]; x.Status != pluginapi.ReceiptRefused || x.Fault.Code != core.FaultTooLarge || x.Fault.Transient {
		t.Errorf("the large one: %v, %+v", x.Status, x.Fault)
	}
	delete(got, large)
	counts := entries(t, got)
	if len(counts) < 60*1500/limit || len(counts) > 20 {
		t.Errorf("entries: %v", counts)
	}
	for i, m := range read(t, b, to, n-1) {
		if i >= large {
			i++
		}
		if m.Payload()[0] != byte(i) {
			t.Fatalf("message %d is %d", i, m.Payload()[0])
		}
	}
}

// A batch is written when it has its messages, its bytes or its age, and what cannot
// be part of one does not wait.
func TestBatchesBecomeRipe(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	for _, tt := range []struct {
		name            string
		delay           time.Duration
		messages, bytes int
		n, entries      int
		last            wire.Outgoing // in place of the last one
	}{
		{"messages", time.Hour, 10, 1, 30, 3, wire.Outgoing{}},
		{"bytes", time.Hour, 1000, 50_000, 6, 3, wire.Outgoing{}},
		{"age", 20 * time.Millisecond, 1000, 1, 1, 1, wire.Outgoing{}},
		{"delayed", time.Hour, 1000, 1, 30, 2, wire.Outgoing{DeliverAt: time.Now().UnixMilli() + 1, Payload: []byte("x")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := open(t, b, func(c *outbox.Config) { c.Batch, c.BatchMessages = tt.delay, tt.messages })
			to, r := name(t, "t"), newReceipts(t)
			for i := range tt.n {
				m := wire.Outgoing{Payload: make([]byte, tt.bytes)}
				if i == tt.n-1 && tt.last.DeliverAt > 0 {
					m = tt.last
				}
				if f := k.send(r, i, to, m); f != nil {
					t.Fatal(f)
				}
			}
			if got := entries(t, r.confirmed(tt.n)); len(got) > tt.entries+1 || len(got) < tt.entries {
				t.Errorf("entries: %v, want %d", got, tt.entries)
			}
		})
	}
}

// A batch's keys, properties and times arrive with each of its messages.
func TestBatchedMessagesAreWhole(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b, func(c *outbox.Config) { c.Batch, c.BatchMessages = time.Hour, 3 })
	to, r := name(t, "t"), newReceipts(t)
	at := time.Date(2020, 2, 3, 4, 5, 6, 7e6, time.UTC)
	for i := range 3 {
		f := k.send(r, i, to, wire.Outgoing{
			Key: fmt.Sprint("k", i), OrderingKey: fmt.Sprint("o", i), EventTime: at.Add(time.Duration(i) * time.Second).UnixMilli(),
			Properties: []wire.OutgoingProperty{{Name: "n", Value: []byte{'0' + byte(i)}}}, Payload: fmt.Append(nil, i),
		})
		if f != nil {
			t.Fatal(f)
		}
	}
	r.confirmed(3)
	for i, m := range read(t, b, to, 3) {
		want := fmt.Sprint("k", i, " o", i, " ", at.Add(time.Duration(i)*time.Second).UnixMilli(), " map[n:", i, "] ", i)
		if got := fmt.Sprint(m.Key(), " ", m.OrderingKey(), " ", m.EventTime().UnixMilli(), " ", m.Properties(), " ", string(m.Payload())); got != want {
			t.Errorf("message %d: %s, want %s", i, got, want)
		}
	}
}
