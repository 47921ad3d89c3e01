// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// TestRawHandlersDoNotAllocate holds what the host adds to the engine for an
// ack of a raw handler at nothing.
func TestRawHandlersDoNotAllocate(t *testing.T) {
	for name, handle := range map[string]settlement.Handler{
		"bytes": plain[[]byte](func(_ context.Context, m *Message[[]byte]) error {
			_ = m.Value[0]
			return nil
		}).handle,
		"messages": plain[core.Message](func(_ context.Context, m *Message[core.Message]) error {
			_ = m.Value.Name
			return nil
		}).handle,
	} {
		t.Run(name, func(t *testing.T) {
			d := &settlement.Delivery{Message: core.Message{
				Name: "orders", Payload: []byte("payload"), Headers: core.Headers{{Name: "a", Value: []byte("b")}},
			}, Number: 1}
			ctx := t.Context()
			if got := testing.AllocsPerRun(1000, func() { handle(ctx, d) }); got != 0 {
				t.Errorf("%v allocations a delivery, want none", got)
			}
		})
	}
}

// plain is a runner without rules.
func plain[T any](f Handler[T]) *runner[T] {
	rules, _ := resolve(nil, nil)
	e := &Endpoint{name: "in", host: new(Host)}
	return &runner[T]{calls: calls{rules: &rules, from: &Subscription{endpoint: e, name: "orders"}}, handler: f}
}

// TestRawBatchesDoNotAllocate is the same for batches: messages and lists are used
// again.
func TestRawBatchesDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget at random")
	}
	const size = 64
	b := &batcher[[]byte]{handler: func(_ context.Context, ms []*Message[[]byte]) []error {
		_ = ms[size-1].Value[0]
		return nil
	}}
	b.calls = plain[[]byte](nil).calls
	ds, said := make([]*settlement.Delivery, size), make([]settlement.Said, size)
	for i := range ds {
		ds[i] = &settlement.Delivery{Message: core.Message{Name: "orders", Payload: []byte("payload")}, Number: 1}
	}
	ctx := t.Context()
	got := testing.AllocsPerRun(1000, func() {
		for _, d := range ds {
			if _, ok := b.open(ctx, d); !ok {
				t.Fatal("it is not open")
			}
		}
		if n := b.handleAll(ctx, ds, said); n != -1 || said[size-1].Outcome.Kind != core.OutcomeAck {
			t.Fatalf("got %d outcomes, the last one %v", n, said[size-1].Outcome)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a batch of %d, want none", got, size)
	}
}

// BenchmarkHandle is what a raw handler costs beside the engine.
func BenchmarkHandle(b *testing.B) {
	r := plain[[]byte](func(context.Context, *Message[[]byte]) error { return nil })
	d := &settlement.Delivery{Message: core.Message{Name: "orders", Payload: []byte("payload")}, Number: 1}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if said := r.handle(ctx, d); said.Outcome.Kind != core.OutcomeAck {
			b.Fatal(said)
		}
	}
}

// bill is a payload.
type bill struct {
	ID   string `json:"id"`
	Paid bool   `json:"paid"`
}

func ofBill() *settlement.Delivery {
	return &settlement.Delivery{Message: core.Message{
		Name: "orders", Payload: []byte(`{"id":"o-1","paid":true}`),
		Headers: core.Headers{{Name: "Content-Type", Value: []byte("application/json")}, {Name: "a", Value: []byte("b")}},
	}, Number: 1}
}

// TestJSONHandlersAllocateForJSON holds what the host adds to encoding/json at
// nothing.
func TestJSONHandlersAllocateForJSON(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget at random")
	}
	r, d, ctx := plain[bill](func(context.Context, *Message[bill]) error { return nil }), ofBill(), t.Context()
	if said := r.handle(ctx, d); said.Outcome.Kind != core.OutcomeAck {
		t.Fatal(said)
	}
	into := new(bill)
	alone := testing.AllocsPerRun(1000, func() {
		if err := json.Unmarshal(d.Message.Payload, into); err != nil {
			t.Fatal(err)
		}
	})
	if got := testing.AllocsPerRun(1000, func() { r.handle(ctx, d) }); got != alone {
		t.Errorf("%v allocations a delivery, encoding/json alone has %v", got, alone)
	}
}

// BenchmarkHandleJSON is BenchmarkHandle with a payload that is decoded.
func BenchmarkHandleJSON(b *testing.B) {
	r, d, ctx := plain[bill](func(context.Context, *Message[bill]) error { return nil }), ofBill(), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if said := r.handle(ctx, d); said.Outcome.Kind != core.OutcomeAck {
			b.Fatal(said)
		}
	}
}
