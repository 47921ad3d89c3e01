// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
)

// More topics than may be open take turns, in order each, and no more are open than
// allowed.
func TestMoreTopicsThanProducers(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	const most, topics, each = 2, 6, 100
	k := open(t, b, func(c *outbox.Config) { c.Producers = most })
	r := newReceipts(t)
	for i := range each * topics {
		if f := k.post(r, i, name(t, fmt.Sprint(i%topics)), fmt.Sprint(i/topics)); f != nil {
			t.Fatal(f)
		}
		if n := k.box.Open(); n > most {
			t.Fatalf("%d producers are open", n)
		}
	}
	r.confirmed(each * topics)
	for i := range topics {
		for j, m := range read(t, b, name(t, fmt.Sprint(i)), each) {
			if string(m.Payload()) != fmt.Sprint(j) {
				t.Fatalf("message %d of topic %d is %q", j, i, m.Payload())
			}
		}
	}
	eventually(t, "producers to be closed at the broker", func() bool {
		n := 0
		for i := range topics {
			n += len(b.Stats(name(t, fmt.Sprint(i))).Publishers)
		}
		return n <= most
	})
}

// A topic that gets no place in time is refused with the reason, and one that is
// idle makes room.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	k, p := behind(t, timeout(hasty), func(c *outbox.Config) { c.Producers = 1 })
	k.warm(name(t, "a"))
	k.warm(name(t, "b")) // a was idle
	p.Stall(proxy.ToServer)
	r := newReceipts(t)
	for i, to := range []string{"b", "a"} {
		if f := k.post(r, i, name(t, to), "x"); f != nil {
			t.Fatal(f)
		}
	}
	got := r.await(2)
	if got[0].Status != pluginapi.ReceiptUnknown {
		t.Errorf("the message on its way: %v, %v", got[0].Status, got[0].Fault)
	}
	if x := got[1]; x.Status != pluginapi.ReceiptRefused || !x.Fault.Transient {
		t.Errorf("the message without a place: %v, %+v", x.Status, x.Fault)
	}
}

// Close waits for the receipts of what was taken, and leaves nothing behind.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	k := open(t, b, func(c *outbox.Config) { c.Batch, c.BatchMessages = time.Hour, 1000 })
	to, r := name(t, "t"), newReceipts(t)
	const n = 10
	for i := range n {
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	eventually(t, "the producer to be open", func() bool { return k.box.Lent() == n })
	k.close(patience) // long before the batch is due
	r.confirmed(n)
	if f := k.post(r, n, to, "late"); f == nil || f.Code != core.FaultClosed {
		t.Errorf("after Close: %v", f)
	}
	if s := b.Stats(to); len(s.Publishers) > 0 {
		t.Errorf("there are producers: %+v", s.Publishers)
	}
}

// Where Close has no time, every message has a receipt all the same.
func TestCloseWithoutTime(t *testing.T) {
	t.Parallel()
	k, p := behind(t, func(c *outbox.Config) { c.Window = 3 })
	to, r := name(t, "t"), newReceipts(t)
	k.warm(to)
	p.Stall(proxy.ToServer)
	const n = 5
	for i := range n {
		if f := k.post(r, i, to, fmt.Sprint(i)); f != nil {
			t.Fatal(f)
		}
	}
	k.box.AwaitSent(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := k.box.Close(ctx); err == nil {
		t.Error("Close has no error")
	}
	if took := time.Since(began); took > patience/4 {
		t.Errorf("Close took %v", took)
	}
	for i, x := range r.await(n) {
		want := pluginapi.ReceiptUnknown
		if i >= 3 {
			want = pluginapi.ReceiptRefused
		}
		if x.Status != want {
			t.Errorf("message %d: %v, %v", i, x.Status, x.Fault)
		}
	}
	p.Resume()
}

// An endpoint that has ended says why, of what is there and what comes.
func TestFail(t *testing.T) {
	t.Parallel()
	k, p := behind(t)
	to, r := name(t, "t"), newReceipts(t)
	k.warm(to)
	p.Stall(proxy.ToServer)
	if f := k.post(r, 0, to, "x"); f != nil {
		t.Fatal(f)
	}
	k.box.AwaitSent(t, 1)
	why := &core.Fault{Code: core.FaultDenied, Message: "the token is not taken any more"}
	k.box.Fail(why)
	if x := r.await(1)[0]; x.Status != pluginapi.ReceiptUnknown || x.Fault.Code != core.FaultDenied {
		t.Errorf("%v, %+v", x.Status, x.Fault)
	}
	if f := k.post(r, 1, to, "x"); f == nil || f.Code != core.FaultDenied {
		t.Errorf("what comes: %v", f)
	}
	p.Resume()
}
