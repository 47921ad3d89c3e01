// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// flood is a subscription that always has messages, in batches of a size.
type flood struct {
	batch   []Delivery
	results []Result
	size    int
}

func newFlood(size, payload int) *flood {
	f := &flood{batch: make([]Delivery, size), results: make([]Result, 4096), size: size}
	m := core.Message{Name: "orders", Payload: make([]byte, payload), Headers: core.Headers{
		{Name: "content-type", Value: []byte("application/json")},
		{Name: "trace", Value: []byte("0123456789abcdef")},
		{Name: "tenant", Value: []byte("a")},
	}}
	for i := range f.batch {
		f.batch[i] = Delivery{Handle: f, Message: m}
	}
	for i := range f.results {
		f.results[i].Status = ResultDone
	}
	return f
}

func (f *flood) Profiles() []core.Capabilities { return []core.Capabilities{{Ack: core.AckSingle}} }

func (f *flood) Receive(ctx context.Context, room Room) (Batch, error) {
	if room.Messages == 0 {
		<-ctx.Done()
		return Batch{}, ctx.Err()
	}
	return Batch{Deliveries: f.batch[:min(room.Messages, f.size)]}, nil
}

func (f *flood) Settle(_ context.Context, vs []Verdict) []Result { return f.results[:len(vs)] }

func (f *flood) Close(context.Context) error { return nil }

// The SDK alone: deliveries and acks through a local link, one verdict each.
func BenchmarkDeliverAndAck(b *testing.B) {
	for _, size := range []int{1, 16, 256} {
		for _, window := range []uint64{64, 1024} {
			b.Run(fmt.Sprintf("batch=%d/window=%d", size, window), func(b *testing.B) {
				tr := newQueueTransport(core.Capabilities{Ack: core.AckSingle})
				tr.wrap = func(Subscription) Subscription { return newFlood(size, 512) }
				l, end := drive(b, tr)
				defer end()
				s, err := l.Subscribe(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range []*frame.SubscribeRequest{
					{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}},
					{Credit: &frame.Credit{Messages: window, Bytes: 8 << 20}},
				} {
					if err := s.Send(r); err != nil {
						b.Fatal(err)
					}
				}
				var r frame.SubscribeResponse
				runs := make([]frame.VerdictRun, 0, 256)
				b.ReportAllocs()
				b.ResetTimer()
				for n := 0; n < b.N; {
					if err := s.Recv(&r); err != nil {
						b.Fatal(err)
					}
					if r.Deliveries == nil {
						continue
					}
					runs = runs[:0]
					for i := range r.Deliveries.Items {
						runs = append(runs, frame.VerdictRun{First: r.Deliveries.Items[i].ID, Kind: core.VerdictAck})
					}
					n += len(runs)
					r.Deliveries.Release()
					if err := s.Send(&frame.SubscribeRequest{Settle: runs}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	tr := newQueueTransport(core.Capabilities{Ack: core.AckSingle})
	tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
		for i := range msgs {
			done(i, Receipt{Status: ReceiptConfirmed})
		}
	}
	l, end := drive(b, tr)
	defer end()
	s, err := l.Publish(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 512)
	var rs []frame.Receipt
	id, open := uint64(0), 0
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		for open < 1024 {
			f := frame.NewPublishes()
			for range 64 {
				id++
				f.Items = append(f.Items, frame.Outgoing{ID: id, Message: core.Message{Name: "n", Payload: payload}})
			}
			open += 64
			if err := s.Send(f); err != nil {
				b.Fatal(err)
			}
		}
		if rs, err = s.Recv(rs[:0]); err != nil {
			b.Fatal(err)
		}
		n += len(rs)
		open -= len(rs)
	}
}
