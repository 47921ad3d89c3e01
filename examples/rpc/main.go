// SPDX-License-Identifier: Apache-2.0

// Command rpc asks over ZeroMQ and gets answers, as long as the one that is asked
// is quick enough. main_test.go tests it.
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/rpc 2>log
//
// Both hosts are in one process here. As services of their own they would know an
// address that does not change, such as tcp://bank:5558.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Question asks for the rate between two currencies.
type Question struct{ From, To string }

// Answer is the rate, or why there is none: an error of the handler would be no
// answer.
type Answer struct {
	Rate  float64 `json:",omitempty"`
	Error string  `json:",omitempty"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run asks a bank some questions and prints what comes of them.
func run(ctx context.Context) error {
	b := host.New()
	bank := answer(b)
	stop, err := serve(ctx, b)
	if err != nil {
		return err
	}
	defer stop()

	c := host.New()
	desk := c.Endpoint("desk", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternRPC, Connect: bank.Addresses(),
	})
	stop, err = serve(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	for _, q := range []Question{{"EUR", "USD"}, {"EUR", "EUR"}, {"XAU", "USD"}, {"USD", "EUR"}} {
		fmt.Printf("%s in %s: %s\n", q.From, q.To, ask(ctx, c, desk.To("rates"), q))
	}
	return nil
}

// slow is how long the bank takes for gold.
const slow = time.Second

// answer declares a bank and returns the endpoint that it listens on.
func answer(h *host.Host) *host.Endpoint {
	bank := h.Endpoint("bank", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternRPC,
		Bind:    "tcp://127.0.0.1:0", // a free port
	})
	// A question cannot be put back to those who ask. One that the handler fails on,
	// or whose answer nobody waits for any more, comes here.
	failed := h.Endpoint("failed", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternQueue, Bind: "tcp://127.0.0.1:0",
	})
	rates := map[Question]float64{{"EUR", "USD"}: 1.25, {"USD", "EUR"}: 0.8, {"XAU", "USD"}: 4100}
	host.HandleReply(bank.Subscription("rates"), func(ctx context.Context, m *host.Message[Question]) (Answer, error) {
		if m.Value.From == "XAU" {
			gold := time.NewTimer(slow)
			defer gold.Stop()
			select {
			case <-gold.C:
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			}
		}
		rate, found := rates[m.Value]
		if !found {
			return Answer{Error: "no such rate"}, nil
		}
		return Answer{Rate: rate}, nil
	}, host.Workers(4), host.MaxAttempts(2), host.RetryTo(failed.To("rates")))
	host.Handle(failed.Subscription("rates"), func(_ context.Context, m *host.Message[Question]) error {
		log.Printf("%s in %s: nobody got an answer", m.Value.From, m.Value.To)
		return nil
	}, host.MaxAttempts(2))
	return bank
}

// ask asks a question and returns what comes of it.
func ask(ctx context.Context, h *host.Host, rates core.Destination, q Question) string {
	a, err := host.Request[Question, Answer](ctx, h, rates, q, host.WithTimeout(300*time.Millisecond))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case err != nil:
		return err.Error()
	case a.Error != "":
		return a.Error
	}
	return strconv.FormatFloat(a.Rate, 'g', -1, 64)
}

// serve runs a host until the returned function is called. It returns once the
// host serves.
func serve(ctx context.Context, h *host.Host) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !h.Ready() {
		select {
		case err := <-ended:
			cancel()
			return nil, err
		case <-look.C:
		}
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			log.Print(err)
		}
	}, nil
}
