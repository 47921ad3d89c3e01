// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Payloads arrive as they are, compressed or not, in batches or not. Their memory is
// the sender's again once they have a receipt.
func TestCompressionAndBatches(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	for _, c := range []wire.Compression{wire.NoCompression, wire.LZ4, wire.ZLib, wire.ZSTD} {
		for _, batch := range []time.Duration{0, 50 * time.Millisecond} {
			t.Run(fmt.Sprint(c, batch > 0), func(t *testing.T) {
				t.Parallel()
				k := open(t, b, func(o *outbox.Config) { o.Compression, o.Batch, o.BatchMessages = c, batch, 10 })
				to, r := name(t, "t"), newReceipts(t)
				const n = 25
				var payloads [n][]byte
				for i := range n {
					payloads[i] = bytes.Repeat([]byte{byte('a' + i)}, 10_000)
					own := bytes.Clone(payloads[i])
					done := func(i int, x pluginapi.Receipt) {
						clear(own)
						r.done(i, x)
					}
					if f := k.box.Add(&outbox.Post{Topic: parse(t, to), Name: to, Message: wire.Outgoing{Payload: own}, Done: done, I: i}); f != nil {
						t.Fatal(f)
					}
				}
				got := r.confirmed(n)
				entries := make(map[int64]bool)
				for i, m := range read(t, b, to, n) {
					if !bytes.Equal(m.Payload(), payloads[i]) {
						t.Fatalf("message %d is %.10q", i, m.Payload())
					}
					entries[m.ID().EntryID()] = true
					_, id, err := topic.DecodePosition(got[i].Position)
					if err != nil || id.Entry != m.ID().EntryID() || m.ID().BatchSize() > 1 && id.Batch != m.ID().BatchIdx() {
						t.Fatalf("message %d is at %v, its receipt says %v, %v", i, m.ID(), id, err)
					}
				}
				if batched := len(entries) < n; batched != (batch > 0) {
					t.Errorf("%d messages are %d entries", n, len(entries))
				}
			})
		}
	}
}

// A key decides the partition, and its messages keep their order, also when the topic
// gets more partitions; then the new ones get messages too.
func TestPartitions(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	to := name(t, "t")
	b.CreatePartitioned(to, 2)
	k := open(t, b, func(c *outbox.Config) { c.Discovery = 100 * time.Millisecond })
	r := newReceipts(t)
	const n = 100
	for i := range n {
		if f := k.send(r, i, to, wire.Outgoing{Key: fmt.Sprint("k", i%5), Payload: []byte(fmt.Sprint(i))}); f != nil {
			t.Fatal(f)
		}
	}
	at := make(map[string]int)
	for i, x := range r.confirmed(n) {
		place, id, err := topic.DecodePosition(x.Position)
		if err != nil || place.Local != to || id.Partition < 0 {
			t.Fatalf("%v, %v, %v", place, id, err)
		}
		key := fmt.Sprint("k", i%5)
		if was, ok := at[key]; ok && was != place.Partition {
			t.Fatalf("key %s is in partitions %d and %d", key, was, place.Partition)
		}
		at[key] = place.Partition
	}
	last := make(map[string]int)
	for _, m := range read(t, b, to, n) {
		var i int
		if _, err := fmt.Sscan(string(m.Payload()), &i); err != nil {
			t.Fatal(err)
		}
		if was, ok := last[m.Key()]; ok && i < was {
			t.Fatalf("key %s: %d comes behind %d", m.Key(), i, was)
		}
		last[m.Key()] = i
	}
	b.UpdatePartitions(to, 4)
	eventually(t, "the new partitions to get messages", func() bool {
		k.one(to, "x")
		s, err := b.TryStats(to + "-partition-3")
		return err == nil && s.MsgInCounter > 0
	})
}

// One partition of a topic is a destination as well.
func TestOnePartition(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	to := name(t, "t")
	b.CreatePartitioned(to, 2)
	k := open(t, b)
	for range 3 {
		x := k.one(to+"-partition-1", "x")
		if n, _, err := topic.DecodePosition(x.Position); err != nil || n.Partition != 1 {
			t.Errorf("%v, %v, %v", n, err, x.Fault)
		}
	}
}

// A broker with deduplication drops what has the number of one before, over a restart
// of the producer too. Messages without a number between them are not dropped.
func TestSequenceIDs(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	namespace := "public/" + clean(t.Name())
	b.CreateNamespace(namespace)
	b.Deduplicate(namespace)
	to := namespace + "/t"
	named := func(c *outbox.Config) { c.Name = "shop" }
	first := open(t, b, named)
	publish := func(k *kit, number int64, text string) pluginapi.Receipt {
		t.Helper()
		m := wire.Outgoing{Payload: []byte(text)}
		if number >= 0 {
			m.Sequence = &number
		}
		r := newReceipts(t)
		if f := k.send(r, 0, to, m); f != nil {
			t.Fatal(f)
		}
		return r.confirmed(1)[0]
	}
	if x := publish(first, 10, "ten"); x.Position == nil {
		t.Error("what is stored has no position")
	}
	if x := publish(first, 10, "ten again"); x.Position != nil {
		t.Error("what is dropped has a position")
	}
	publish(first, 11, "eleven")
	publish(first, -1, "plain")
	publish(first, -1, "plain too")
	first.close(patience)
	second := open(t, b, named)
	publish(second, 11, "eleven again")
	publish(second, 100, "hundred")
	var got []string
	for _, m := range read(t, b, to, 5) {
		got = append(got, string(m.Payload()))
	}
	if want := "ten,eleven,plain,plain too,hundred"; strings.Join(got, ",") != want {
		t.Errorf("stored: %q, want %q", got, want)
	}
}

// Two processes cannot have one name at a topic; without a name there is no conflict
// (P-18).
func TestP18Names(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	to := name(t, "t")
	for _, producer := range []string{"", "shop"} {
		set := func(c *outbox.Config) { c.Name = producer }
		one, two := open(t, b, set), open(t, b, set)
		one.warm(to)
		x := two.one(to, "x")
		switch {
		case producer == "" && x.Status != pluginapi.ReceiptConfirmed:
			t.Errorf("without a name: %v, %v", x.Status, x.Fault)
		case producer != "" && (x.Status != pluginapi.ReceiptRefused || x.Fault.Code != core.FaultConflict || !strings.Contains(x.Fault.Error(), "shop")):
			t.Errorf("with the same name: %v, %+v", x.Status, x.Fault)
		}
		one.close(patience)
		if producer != "" {
			eventually(t, "the name to be free", func() bool { return two.one(to, "x").Status == pluginapi.ReceiptConfirmed })
		}
	}
}

// What the library finds too large when it puts a message together was not sent, and
// its producer goes on.
func TestTooLargeWithMetadata(t *testing.T) {
	t.Parallel()
	k := open(t, broker.Broker(t))
	to, r := name(t, "t"), newReceipts(t)
	sizes := []int{5<<20 - 10, 6 << 20, 3}
	for i, size := range sizes {
		if f := k.post(r, i, to, strings.Repeat("x", size)); f != nil {
			t.Fatal(f)
		}
	}
	got := r.await(len(sizes))
	for i := range 2 {
		if x := got[i]; x.Status != pluginapi.ReceiptRefused || x.Fault.Code != core.FaultTooLarge || x.Fault.Transient {
			t.Errorf("%d bytes: %v, %+v", sizes[i], x.Status, x.Fault)
		}
	}
	if x := got[2]; x.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("behind them: %v, %v", x.Status, x.Fault)
	}
}
