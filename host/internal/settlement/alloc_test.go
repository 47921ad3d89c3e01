// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"log/slog"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// quickStream is a subscription's stream without a plugin: frames come from a
// channel, verdicts are counted.
type quickStream struct {
	ctx    context.Context
	frames chan *frame.Deliveries
	acked  chan uint64
}

func (s *quickStream) Send(r *frame.SubscribeRequest) error {
	var n uint64
	for _, run := range r.Settle {
		n += run.Count
	}
	if n > 0 {
		s.acked <- n
	}
	return nil
}

func (s *quickStream) CloseSend() error { return nil }

func (s *quickStream) Recv(r *frame.SubscribeResponse) error {
	select {
	case r.Deliveries = <-s.frames:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// quick drives the lane without a plugin.
type quick struct {
	s       *quickStream
	lane    *Lane
	waiting *Waiting
	next    uint64
	items   []frame.Delivery
}

func newQuick(tb testing.TB, caps core.Capabilities, size int) *quick {
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	q := &quick{
		s:       &quickStream{ctx: ctx, frames: make(chan *frame.Deliveries, 8), acked: make(chan uint64, 1024)},
		waiting: NewWaiting(WaitingOptions{Logger: log}),
	}
	q.lane = NewLane(LaneOptions{
		Endpoint: "in", Subscription: "jobs", Logger: log, Waiting: q.waiting,
		Outboxes: func(string) *Outbox { return nil },
		Handle: func(context.Context, *Delivery) Said {
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		},
	})
	q.lane.Attach(Attachment{Stream: q.s, Cancel: cancel, Profiles: []core.Capabilities{caps}, Number: 1})
	q.lane.Grant()
	payload := make([]byte, size)
	headers := core.Headers{
		{Name: "content-type", Value: []byte("application/json")},
		{Name: "x-tenant", Value: []byte("acme")},
		{Name: "traceparent", Value: make([]byte, 55)},
	}
	for range frame.MaxItems {
		item := frame.Delivery{
			Message:  core.Message{Name: "orders", Headers: headers, Payload: payload},
			Identity: []byte("12345678"),
		}
		item.Attempt = counted([]core.Capabilities{caps}, &item)
		q.items = append(q.items, item)
	}
	tb.Cleanup(func() {
		if err := q.lane.Close(context.Background()); err != nil {
			tb.Error(err)
		}
		q.waiting.Close()
	})
	return q
}

// turn delivers one frame of n and waits for its verdicts.
func (q *quick) turn(n int) {
	d := frame.DeliveriesOf(n)
	for i := range n {
		q.next++
		item := q.items[i]
		item.ID = q.next
		d.Items = append(d.Items, item)
	}
	q.s.frames <- d
	for left := uint64(n); left > 0; {
		left -= <-q.s.acked
	}
}

// An ack costs no allocation from the frame to its verdict, with acks and
// without. The frame's own are the wire's, and the goroutines that wake each
// other may add one now and then.
func TestAckDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, caps := range map[string]core.Capabilities{"acks": kindA, "counts": kindC, "no acks": kindU} {
		t.Run(name, func(t *testing.T) {
			const n = 64
			q := newQuick(t, caps, 512)
			q.turn(n)
			got := testing.AllocsPerRun(500, func() { q.turn(n) }) / n
			if got > 0.02 {
				t.Errorf("%.3f allocations a delivery, want none", got)
			}
		})
	}
}

func BenchmarkAck(b *testing.B) {
	for name, n := range map[string]int{"frame=1": 1, "frame=64": 64, "frame=256": 256} {
		b.Run(name, func(b *testing.B) {
			q := newQuick(b, kindA, 512)
			b.ReportAllocs()
			for b.Loop() {
				q.turn(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
		})
	}
}

// quickPublish confirms everything at once.
type quickPublish struct {
	ctx      context.Context
	receipts chan []frame.Receipt
}

func (s *quickPublish) Send(p *frame.Publishes) error {
	rs := make([]frame.Receipt, len(p.Items))
	for i := range p.Items {
		rs[i] = frame.Receipt{ID: p.Items[i].ID, Status: frame.ReceiptConfirmed}
	}
	p.Release()
	s.receipts <- rs
	return nil
}

func (s *quickPublish) CloseSend() error { return nil }

func (s *quickPublish) Recv(rs []frame.Receipt) ([]frame.Receipt, error) {
	select {
	case more := <-s.receipts:
		return append(rs, more...), nil
	case <-s.ctx.Done():
		return rs, s.ctx.Err()
	}
}

func BenchmarkSend(b *testing.B) {
	q := newQuick(b, kindA, 512)
	ctx, cancel := context.WithCancel(context.Background())
	box := NewOutbox(OutboxOptions{Endpoint: "in", Logger: slog.New(slog.DiscardHandler)})
	box.Attach(&quickPublish{ctx: ctx, receipts: make(chan []frame.Receipt, 64)}, 1, cancel)
	b.Cleanup(box.Close)
	q.lane.o.Outboxes = func(string) *Outbox { return box }
	q.lane.o.Handle = func(_ context.Context, d *Delivery) Said {
		return Said{
			Outcome:   core.Outcome{Kind: core.OutcomeAck},
			Publishes: []Publish{{To: core.Destination{Endpoint: "in", Name: "next"}, Message: d.Message}},
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		q.turn(64)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*64), "ns/delivery")
}
