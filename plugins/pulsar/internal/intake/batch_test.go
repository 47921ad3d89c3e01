// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The bits of an ack are those of the messages that are left (PulsarApi.proto,
// MessageIdData.ack_set), and none beyond the last message.
func TestUnsettled(t *testing.T) {
	for _, tt := range []struct {
		size    int32
		settled []int32
		want    []uint64
	}{
		{2, []int32{0}, []uint64{0b10}},
		{5, []int32{1, 3}, []uint64{0b10101}},
		{64, []int32{63}, []uint64{1<<63 - 1}},
		{65, []int32{0, 1}, []uint64{^uint64(0b11), 1}},
		{130, []int32{64, 128}, []uint64{^uint64(0), ^uint64(1), 0b10}},
	} {
		b := newBatch(place{1, 2}, tt.size)
		for _, i := range tt.settled {
			b.settle(i)
		}
		if d := cmp.Diff(b.unsettled(nil), tt.want); d != "" {
			t.Errorf("%v of %d: %s", tt.settled, tt.size, d)
		}
	}
}

// box is a source with what is asked of its partition.
type box struct {
	in    *Intake
	p     *feed.Partition
	ch    chan *feed.Batch
	nacks [][]wire.MessageID
	acks  chan []wire.Acked
}

func (b *box) Batches() <-chan *feed.Batch                    { return b.ch }
func (b *box) Release(*feed.Batch)                            {}
func (b *box) Seek(context.Context, pluginapi.Position) error { return nil }
func (b *box) Close(context.Context) error                    { return nil }

func newBox(t *testing.T, c Config) *box {
	t.Helper()
	n, err := topic.Parse("box")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{p: &feed.Partition{Source: message.NewSource(n, "box")}, ch: make(chan *feed.Batch, 8), acks: make(chan []wire.Acked, 8)}
	b.in = newIntake(c, calls{
		ack: func(_ *feed.Partition, acks []wire.Acked) error {
			for i := range acks {
				acks[i].Left = slices.Clone(acks[i].Left)
			}
			b.acks <- slices.Clone(acks)
			return nil
		},
		nack:  func(_ *feed.Partition, ids []wire.MessageID) { b.nacks = append(b.nacks, slices.Clone(ids)) },
		epoch: func(*feed.Partition) uint64 { return 1 },
	})
	b.in.feed = b
	t.Cleanup(func() {
		if err := b.in.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return b
}

// deliver hands out messages and returns their handles.
func (b *box) deliver(t *testing.T, ms ...wire.Message) []any {
	t.Helper()
	b.ch <- &feed.Batch{Partition: b.p, Epoch: 1, Messages: ms}
	return b.receive(t, 1000)
}

// receive takes what there is, as far as there is room, and returns the handles.
func (b *box) receive(t *testing.T, room int) []any {
	t.Helper()
	out, _, err := b.in.gather(pluginapi.Room{Messages: room, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	handles := make([]any, len(out.Deliveries))
	for i := range out.Deliveries {
		handles[i] = out.Deliveries[i].Handle
	}
	return handles
}

func (b *box) settle(t *testing.T, kind core.VerdictKind, handles ...any) {
	t.Helper()
	vs := make([]pluginapi.Verdict, len(handles))
	for i, h := range handles {
		vs[i] = pluginapi.Verdict{Handle: h, Kind: kind}
	}
	for _, r := range b.in.Settle(t.Context(), vs) {
		if r.Status != pluginapi.ResultDone {
			t.Errorf("%v: %+v", kind, r)
		}
	}
}

func batchOf(entry int64, size int32) []wire.Message {
	ms := make([]wire.Message, size)
	for i := range ms {
		ms[i].ID = wire.MessageID{Ledger: 7, Entry: entry, Batch: int32(i), Size: size}
	}
	return ms
}

// Nacks leave with the verdicts, in one command, an entry once.
func TestNacksLeaveTogether(t *testing.T) {
	b := newBox(t, Config{Feed: feed.Config{Type: wire.Shared}})
	alone := wire.Message{ID: wire.MessageID{Ledger: 7, Entry: 3, Batch: wire.NoBatch}}
	handles := b.deliver(t, append(batchOf(1, 3), alone)...)
	b.settle(t, core.VerdictRequeue, handles...)
	want := [][]wire.MessageID{{{Ledger: 7, Entry: 1, Batch: wire.NoBatch}, {Ledger: 7, Entry: 3, Batch: wire.NoBatch}}}
	if d := cmp.Diff(b.nacks, want); d != "" {
		t.Error(d)
	}
}

// Messages of an entry that wait, and are given back one after the other, ask for it
// once: until it has come again the others come with it.
func TestWaitsOfABatchAskOnce(t *testing.T) {
	b := newBox(t, Config{Feed: feed.Config{Type: wire.Shared}})
	handles := b.deliver(t, batchOf(1, 4)...)
	b.in.Hold(handles)
	for _, h := range handles[:3] {
		b.settle(t, core.VerdictRequeue, h)
	}
	if len(b.nacks) != 1 {
		t.Errorf("asked for %v", b.nacks)
	}
	again := b.deliver(t, batchOf(1, 4)...)
	if len(again) != 3 {
		t.Fatalf("%d came again, want 3 beside the one that waits", len(again))
	}
	b.settle(t, core.VerdictRequeue, handles[3])
	if len(b.nacks) != 1 {
		t.Errorf("asked for %v while others of it are in hand", b.nacks)
	}
	b.settle(t, core.VerdictRequeue, again...)
	if len(b.nacks) != 2 {
		t.Errorf("asked for %v", b.nacks)
	}
}

// An entry is named once in a command of acks, with all that is settled of it.
func TestAcksOfABatch(t *testing.T) {
	b := newBox(t, Config{Feed: feed.Config{Type: wire.Shared}, AckTimeout: time.Hour})
	handles := b.deliver(t, append(batchOf(1, 3), batchOf(2, 2)...)...)
	b.settle(t, core.VerdictAck, handles[0], handles[2], handles[3], handles[4])
	want := []wire.Acked{{Ledger: 7, Entry: 1, Left: []uint64{0b010}, Size: 3}, {Ledger: 7, Entry: 2}}
	if d := cmp.Diff(<-b.acks, want); d != "" {
		t.Error(d)
	}
	b.settle(t, core.VerdictAck, handles[1])
	if d := cmp.Diff(<-b.acks, []wire.Acked{{Ledger: 7, Entry: 1}}); d != "" {
		t.Error(d)
	}
}

// What is acked of an entry that has come once more is not delivered again when its
// last message is acked while the host has no room for the rest.
func TestRestOfAnEntryThatIsAcked(t *testing.T) {
	for name, tt := range map[string]struct {
		kind  wire.SubscriptionType
		again func(b *box, h any) // makes the entry come once more
	}{
		"a retry": {wire.Shared, func(b *box, h any) { b.settle(t, core.VerdictRequeue, h) }},
		"a new consumer": {wire.Exclusive, func(b *box, h any) {
			b.in.Release([]any{h})
			b.ch <- &feed.Batch{Partition: b.p, Epoch: 1, Back: true}
			b.receive(t, 1)
			b.in.lanes[b.p].waryTo = time.Time{} // as it is later
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, Config{Feed: feed.Config{Type: tt.kind}})
			handles := b.deliver(t, batchOf(1, 4)...)
			b.settle(t, core.VerdictAck, handles[0], handles[2], handles[3])
			<-b.acks
			tt.again(b, handles[1])
			b.ch <- &feed.Batch{Partition: b.p, Epoch: 1, Messages: batchOf(1, 4)}
			again := b.receive(t, 1)
			if len(again) != 1 {
				t.Fatalf("%d came again", len(again))
			}
			b.settle(t, core.VerdictAck, again[0])
			if a := <-b.acks; len(a) != 1 || a[0].Left != nil {
				t.Fatalf("acked %+v", a)
			}
			if left := b.in.flush(t.Context()); left != 0 {
				t.Fatalf("%d acks have no answer", left)
			}
			if more := b.receive(t, 10); len(more) != 0 {
				t.Errorf("%d that are acked came again", len(more))
			}
		})
	}
}

// What another consumer has acked of a batch does not come, and is not waited for: the
// acks of the rest leave, also where they are held back for the whole.
func TestRestOfABatchThatOthersHaveAcked(t *testing.T) {
	b := newBox(t, Config{Feed: feed.Config{Type: wire.Shared}})
	come := func(left uint64, at ...int32) []wire.Message {
		var ms []wire.Message
		for _, i := range at {
			ms = append(ms, wire.Message{
				ID: wire.MessageID{Ledger: 7, Entry: 1, Batch: i, Size: 4}, Redelivered: 1, Left: []uint64{left},
			})
		}
		return ms
	}
	await := func(what string, want []wire.Acked) {
		t.Helper()
		select {
		case got := <-b.acks:
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", what, d)
			}
		case <-time.After(pulsarbroker.Limit):
			t.Fatal("no ack leaves: ", what)
		}
	}
	whole := []wire.Acked{{Ledger: 7, Entry: 1}}
	b.settle(t, core.VerdictAck, b.deliver(t, come(0b0110, 1, 2)...)...)
	await("all that has come is acked", whole)

	b = newBox(t, Config{Feed: feed.Config{Type: wire.Shared}})
	handles := b.deliver(t, come(0b1110, 1, 2, 3)...)
	b.settle(t, core.VerdictAck, handles[0]) // held back
	b.settle(t, core.VerdictRequeue, handles[1:]...)
	// Another consumer had it meanwhile, and has acked message 2.
	b.settle(t, core.VerdictAck, b.deliver(t, come(0b1010, 1, 3)...)...)
	await("the last that is left is acked", whole)
}
