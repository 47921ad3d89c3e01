// SPDX-License-Identifier: Apache-2.0

// Command quickstart is a service of one handler: it reads orders from standard
// input and prints those that are shipped. main_test.go tests it.
//
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/quickstart < examples/quickstart/orders.txt
package main

import (
	"context"
	"errors"
	"log"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

type Order struct {
	ID      int
	Address string
}

func main() {
	h := host.New()
	register(h)
	if err := host.RunUntilSignal(context.Background(), h); err != nil {
		log.Fatal(err)
	}
}

func register(h *host.Host) {
	pipe := h.Endpoint("pipe", host.Plugin{Name: "pipe", Stdio: &host.Stdio{}}, settings.Settings{Loopback: true})
	host.Handle(pipe.Subscription("orders"), func(ctx context.Context, m *host.Message[Order]) error {
		if m.Value.Address == "" {
			return errors.New("an order without an address") // a plain error is a retry
		}
		return nil // acks, and forwards
	}, host.Forward(pipe.To("shipped")), host.MaxAttempts(3), host.DeadLetterTo(pipe.To("dead")))
}
