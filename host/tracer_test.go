// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

// spans is a tracer whose spans have a name, carried from message to message by
// a header.
type spans struct{ tale }

type spanKey struct{}

func (s *spans) StartHandling(ctx context.Context, m host.Incoming) (context.Context, func(error)) {
	name := m.Header("trace") + ">" + m.Endpoint() + "/" + m.Subscription() + "/" + string(m.Payload())
	return context.WithValue(ctx, spanKey{}, name), func(err error) {
		s.add("handled %s: %v, %s", name, err, m.Payload())
	}
}

func (s *spans) StartPublishing(ctx context.Context, o *host.Outgoing) (context.Context, func(error)) {
	within, _ := ctx.Value(spanKey{}).(string)
	name := within + ">" + o.To.Name
	o.SetHeader("trace", name)
	return context.WithValue(ctx, spanKey{}, name), func(err error) { s.add("published %s: %v", name, err) }
}

// A trace goes from a publisher through a handler to what that publishes, with
// middleware of the user's inside its spans.
func TestTracer(t *testing.T) {
	var told spans
	inside := func(ctx context.Context, what string) {
		name, _ := ctx.Value(spanKey{}).(string)
		told.add("inside %s %s", what, name)
	}
	q := newQueues()
	s := newService(host.WithTracer(&told), host.WithPublishMiddleware(func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) {
			inside(ctx, "publishing")
			return next(ctx, o)
		}
	}))
	in := attach(s.Host, "in", q)
	orders, shipped := host.To[[]byte](s.Host, in.To("orders")), host.To[[]byte](s.Host, in.To("shipped"))
	host.Handle(in.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
		switch string(m.Value) {
		case "bad":
			return host.Drop(errors.New("no stock"))
		case "panic":
			panic("boom")
		}
		_, err := shipped.Publish(ctx, m.Value)
		return err
	}, host.OnPanic(host.AsDrop), host.Middleware(func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			inside(ctx, "handling")
			return next(ctx, m)
		}
	}))
	host.Handle(in.Subscription("shipped"), acks)
	s.serve(t)
	for _, v := range []string{"good", "bad", "panic"} {
		if _, err := orders.Publish(t.Context(), []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"handled >orders>in/orders/bad: no stock, bad",
		"handled >orders>in/orders/good: <nil>, good",
		"handled >orders>in/orders/panic: it panicked, panic",
		"handled >orders>in/orders/good>shipped>in/shipped/good: <nil>, good",
		"inside handling >orders>in/orders/bad",
		"inside handling >orders>in/orders/good",
		"inside handling >orders>in/orders/panic",
		"inside publishing >orders",
		"inside publishing >orders",
		"inside publishing >orders",
		"inside publishing >orders>in/orders/good>shipped",
		"published >orders>in/orders/good>shipped: <nil>",
		"published >orders: <nil>",
		"published >orders: <nil>",
		"published >orders: <nil>",
	}
	eventually(t, "all is told", func() bool { return len(told.all()) >= len(want) })
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, told.all()); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

// A tracer that panics is a handler that does.
func TestTracerThatPanics(t *testing.T) {
	q := newQueues()
	q.put("orders", "one")
	q.end("orders")
	s := newService(host.WithTracer(panicking{}))
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks, host.OnPanic(host.AsDrop))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"reject one"}, q.verdicts("orders")); d != "" {
		t.Errorf("verdicts (-want +got):\n%s", d)
	}
}

// panicking is a tracer that panics.
type panicking struct{}

func (panicking) StartHandling(context.Context, host.Incoming) (context.Context, func(error)) {
	panic("no spans")
}

func (panicking) StartPublishing(context.Context, *host.Outgoing) (context.Context, func(error)) {
	panic("no spans")
}
