// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/frame"
)

// confirming is a publish stream that confirms all it gets, without a transport.
type confirming struct {
	mu   sync.Mutex
	ids  []uint64
	more chan struct{}
	done <-chan struct{}
}

func (c *confirming) Send(p *frame.Publishes) error {
	c.mu.Lock()
	for i := range p.Items {
		c.ids = append(c.ids, p.Items[i].ID)
	}
	c.mu.Unlock()
	p.Release()
	select {
	case c.more <- struct{}{}:
	default:
	}
	return nil
}

func (c *confirming) CloseSend() error { return nil }

func (c *confirming) Recv(rs []frame.Receipt) ([]frame.Receipt, error) {
	for {
		c.mu.Lock()
		for _, id := range c.ids {
			rs = append(rs, frame.Receipt{ID: id, Status: frame.ReceiptConfirmed})
		}
		c.ids = c.ids[:0]
		c.mu.Unlock()
		if len(rs) > 0 {
			return rs, nil
		}
		select {
		case <-c.more:
		case <-c.done:
			return rs, io.EOF
		}
	}
}

// confirmed returns a publisher whose stream confirms everything.
func confirmed[T any](tb testing.TB, opts ...PublisherOption) *Publisher[T] {
	h := New()
	d := core.Destination{Endpoint: "out", Name: "orders"}
	p := To[T](h, d, opts...)
	box := settlement.NewOutbox(settlement.OutboxOptions{Endpoint: "out"})
	ctx, cancel := context.WithCancel(context.Background())
	box.Attach(&confirming{more: make(chan struct{}, 1), done: ctx.Done()}, 1, cancel)
	tb.Cleanup(box.Close)
	p.p.outlet.Store(&outlet{on: &attached{outbox: box}, to: d, caps: core.Publishing{Headers: core.HeadersNativeBytes}})
	return p
}

// TestPublishingAllocates holds what the host allocates for a publish of raw
// bytes at nothing, and at the Pending where nobody waits.
func TestPublishingAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself, and makes pools forget at random")
	}
	payload := make([]byte, 512)
	ctx := t.Context()
	const most = 0.5 // of the stream and what collects garbage beside it
	p := confirmed[[]byte](t)
	if got := testing.AllocsPerRun(2000, func() { _, _ = p.Publish(ctx, payload) }); got > most {
		t.Errorf("Publish: %v allocations, want none", got)
	}
	header := WithDedupID("one made before")
	if got := testing.AllocsPerRun(2000, func() { _, _ = p.Publish(ctx, payload, header) }); got > most {
		t.Errorf("Publish with an option: %v allocations, want none", got)
	}
	if got := testing.AllocsPerRun(2000, func() { _, _ = p.PublishAsync(ctx, payload) }); got > 1+most {
		t.Errorf("PublishAsync: %v allocations, want one", got)
	}
	m := confirmed[core.Message](t, OrderedReceipts())
	message := core.Message{Payload: payload, Headers: core.Headers{{Name: "a", Value: []byte("b")}}}
	if got := testing.AllocsPerRun(2000, func() { _, _ = m.Publish(ctx, message) }); got > most {
		t.Errorf("Publish of a message in order: %v allocations, want none", got)
	}
	if got := testing.AllocsPerRun(2000, func() { _, _ = m.PublishAsync(ctx, message) }); got > 1+most {
		t.Errorf("PublishAsync of a message in order: %v allocations, want one", got)
	}
}

// BenchmarkPublish compares a publisher that waits for each receipt with one
// that does not, without a transport: what the host costs.
func BenchmarkPublish(b *testing.B) {
	payload := make([]byte, 512)
	b.Run("waiting", func(b *testing.B) {
		p := confirmed[[]byte](b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Publish(b.Context(), payload); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, opts := range map[string][]PublisherOption{"async": nil, "async in order": {OrderedReceipts()}} {
		b.Run(name, func(b *testing.B) {
			p := confirmed[[]byte](b, opts...)
			b.ReportAllocs()
			var last *Pending
			for b.Loop() {
				var err error
				if last, err = p.PublishAsync(b.Context(), payload); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := last.Receipt(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
