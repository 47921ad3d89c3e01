// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// quiet keeps the host's log out of an example's output.
func quiet() host.Option { return host.WithLogger(slog.New(slog.DiscardHandler)) }

// stock is a transport for the examples: queues in this process, with some
// orders in them.
func stock() *queues {
	q := newQueues()
	q.put("orders", `{"id":1}`, `{"id":2}`, `{"id":3}`)
	q.replay("orders")
	return q
}

// A service that handles orders, tries each three times, and keeps what cannot
// be handled. The host ends by itself, since its source has nothing more.
func Example() {
	h := host.New(quiet())
	in := h.Endpoint("in", host.Plugin{InProcess: stock()}, nil)

	type order struct {
		ID int `json:"id"`
	}
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[order]) error {
		if m.Value.ID == 2 {
			return fmt.Errorf("order %d: no stock", m.Value.ID)
		}
		fmt.Println("shipped", m.Value.ID)
		return nil
	}, host.MaxAttempts(3), host.DeadLetterTo(in.To("orders.dead")))

	host.Handle(in.Subscription("orders.dead"), func(_ context.Context, m *host.Message[core.Message]) error {
		fmt.Printf("gave up on %s after %s attempts: %s\n",
			m.Payload(), m.Header("x-longshore-attempts"), m.Header("x-longshore-reason"))
		return nil
	}, host.Timeout(time.Second))

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// shipped 1
	// shipped 3
	// gave up on {"id":2} after 3 attempts: order 2: no stock
}

// What a handler returns decides; errors may be wrapped.
func ExampleHandler() {
	tooBusy, broken := errors.New("too busy"), errors.New("broken")
	ship := func(context.Context, []byte) error { return tooBusy }

	var h host.Handler[[]byte] = func(ctx context.Context, m *host.Message[[]byte]) error {
		switch err := ship(ctx, m.Value); {
		case err == nil:
			return nil // done
		case errors.Is(err, tooBusy):
			return fmt.Errorf("ship: %w", host.RetryAfter(time.Minute, err))
		case errors.Is(err, broken):
			return host.DeadLetter(err)
		default:
			return err // a retry, by the policy
		}
	}
	fmt.Println(h(context.Background(), &host.Message[[]byte]{}))
	// Output: ship: too busy
}

// A start reports all that is wrong together, before anything is connected.
func ExampleStartError() {
	h := host.New(quiet())
	in := h.Endpoint("in", host.Plugin{InProcess: stock()}, nil)
	in.Subscription("invoices")
	host.To[[]byte](h, core.Destination{Endpoint: "out", Name: "shipped"})

	var refused *host.StartError
	if err := h.Run(context.Background()); errors.As(err, &refused) {
		for _, f := range refused.Findings {
			fmt.Printf("%s%s: %s; %s\n", f.Subscription, f.Option, f.Message, f.Fix)
		}
	}
	// Output:
	// invoicesHandle: has no handler; call host.Handle for it
	// To: the endpoint of shipped@out is not attached; attach an endpoint named "out", or name another
}

// Publishers are made before the host runs and used while it does.
func ExampleTo() {
	q := stock()
	h := host.New(quiet())
	shipped := host.To[map[string]int](h, h.Endpoint("out", host.Plugin{InProcess: q}, nil).To("shipped"))

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	for !h.Ready() {
		time.Sleep(time.Millisecond)
	}
	_, err := shipped.Publish(ctx, map[string]int{"id": 7}, host.WithHeader("x-tenant", "acme"))
	fmt.Println(err, string(q.took("shipped")[0].Payload))
	cancel()
	fmt.Println(<-done)
	// Output:
	// <nil> {"id":7}
	// <nil>
}
