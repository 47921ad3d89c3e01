// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// A thousand messages in flight have a receipt each, are stored in the order they
// were added, and are found where their receipts say.
func TestThousandInFlight(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b)
	to, r := name(t, "t"), newReceipts(t)
	const n = 1000
	for i := range n {
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	got := r.confirmed(n)
	for i, m := range read(t, b, to, n) {
		if string(m.Payload()) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, m.Payload())
		}
		n, id, err := topic.DecodePosition(got[i].Position)
		if err != nil {
			t.Fatal(err)
		}
		want := topic.ID{Ledger: m.ID().LedgerID(), Entry: m.ID().EntryID(), Partition: topic.NoPartition, Batch: topic.NoBatch}
		if id != want || n.Local != to {
			t.Fatalf("message %d is at %v of %v, its receipt says %v", i, want, n, id)
		}
	}
}

// An idle outbox makes a producer for its first message, and again after Close of
// another one.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	k := open(t, broker.Broker(t))
	to := name(t, "t")
	for range 3 {
		if r := k.one(to, "x"); r.Status != pluginapi.ReceiptConfirmed {
			t.Fatal(r.Status, r.Fault)
		}
	}
}
