// SPDX-License-Identifier: Apache-2.0

// Command quickstart is a service of one handler: it reads orders from standard
// input and prints those that are shipped.
//
//	go run ./examples/quickstart < examples/quickstart/orders.txt
package main

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

type Order struct {
	ID      int
	Address string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	h := host.New()
	pipe := h.Endpoint("pipe", host.Plugin{Name: "pipe", Stdio: &host.Stdio{}}, settings.Settings{Loopback: true})
	host.Handle(pipe.Subscription("orders"), func(ctx context.Context, m *host.Message[Order]) error {
		if m.Value.Address == "" {
			return errors.New("an order without an address") // a plain error is a retry
		}
		return nil // acks, and forwards
	}, host.Forward(pipe.To("shipped")), host.MaxAttempts(3), host.DeadLetterTo(pipe.To("dead")))
	if err := h.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
