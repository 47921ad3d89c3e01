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
	"github.com/longshore-go/longshore/host/hosttest"
)

// quiet keeps the host's log out of an example's output.
func quiet() host.Option { return host.WithLogger(slog.New(slog.DiscardHandler)) }

// A service that handles orders, tries each three times, and keeps what cannot
// be handled. The host ends by itself, since its source has nothing more. Here
// its endpoint is on a broker in the test process: leave out Replace, and the
// same code runs on MQTT.
func Example() {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	in := h.Endpoint("in", host.Plugin{Name: "mqtt"}, map[string]any{"address": "localhost:1883"})

	type order struct {
		ID int `json:"id"`
	}
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[order]) error {
		if m.Value.ID == 2 {
			return fmt.Errorf("order %d: no stock", m.Value.ID)
		}
		fmt.Println("shipped", m.Value.ID)
		return nil
	}, host.MaxAttempts(3), host.DeadLetterTo(in.To("orders/dead")))

	host.Handle(in.Subscription("orders/dead"), func(_ context.Context, m *host.Message[core.Message]) error {
		fmt.Printf("gave up on %s after %s attempts: %s\n",
			m.Payload(), m.Header("x-longshore-attempts"), m.Header("x-longshore-reason"))
		return nil
	}, host.Timeout(time.Second))

	b.Deliver("orders", hosttest.JSON(order{1}), hosttest.JSON(order{2}), hosttest.JSON(order{3}))
	b.CatchUp() // there is nothing more
	if err := h.Run(context.Background()); err != nil {
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
	in := h.Endpoint("in", hosttest.NewBroker().Plugin(), nil)
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
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), quiet())
	out := h.Endpoint("out", host.Plugin{Name: "pulsar"}, nil)
	shipped := host.To[map[string]int](h, out.To("shipped"))

	stop, err := hosttest.Serve(h) // in a service: go h.Run(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = shipped.Publish(context.Background(), map[string]int{"id": 7}, host.WithHeader("x-tenant", "acme"))
	fmt.Println(err, b.Published("shipped")[0].Text())
	fmt.Println(stop())
	// Output:
	// <nil> {"id":7}
	// <nil>
}
