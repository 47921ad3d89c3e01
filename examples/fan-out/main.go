// SPDX-License-Identifier: Apache-2.0

// Command fan-out publishes news over ZeroMQ: a publisher listens, readers dial it,
// and each gets what begins with the name that it subscribed to. main_test.go
// tests it.
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/fan-out 2>log
//
// All hosts are in one process here. As services of their own they would know an
// address that does not change, such as tcp://news:5556.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// item is something new under its name.
type item struct{ name, text string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	items := []item{
		{"sport.rowing", "the eight of pier 4 wins"},
		{"prices.copper", "9120"},
		{"weather", "fog until noon"},
		{"sport.chess", "a draw"},
	}
	if err := run(ctx, items); err != nil {
		log.Fatal(err)
	}
}

// run publishes items and prints who got what.
func run(ctx context.Context, items []item) error {
	h := host.New()
	press := h.Endpoint("press", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternFanOut,
		Bind:    "tcp://127.0.0.1:0", // a free port
	})
	publishers := map[string]*host.Publisher[[]byte]{}
	for _, name := range append(names(items), sport, prices) {
		publishers[name] = host.To[[]byte](h, press.To(name))
	}
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()

	got := make(chan string)
	for _, prefix := range []string{sport, prices} {
		r := host.New()
		read(r, prefix, press.Addresses()[0], got)
		stop, err := serve(ctx, r)
		if err != nil {
			return err
		}
		defer stop()
	}
	for _, prefix := range []string{sport, prices} {
		if err := expect(ctx, publishers[prefix]); err != nil {
			return err
		}
	}
	return publish(ctx, publishers, items, got)
}

// names lists the names of items, each once.
func names(items []item) []string {
	var out []string
	for _, i := range items {
		if !slices.Contains(out, i.name) {
			out = append(out, i.name)
		}
	}
	return out
}

// What the readers subscribe to.
const (
	sport  = "sport."
	prices = "prices."
)

// read declares a reader of all names that begin with a prefix.
func read(h *host.Host, prefix, address string, got chan<- string) {
	press := h.Endpoint("press", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternFanOut, Connect: []string{address},
	})
	// Nothing can be sent back to a publisher: what is tried again goes through a
	// queue of the reader's own.
	again := h.Endpoint("again", host.Plugin{Name: "zmq"}, settings.Settings{
		Pattern: settings.PatternQueue, Bind: "tcp://127.0.0.1:0",
	})
	show := func(ctx context.Context, m *host.Message[[]byte]) error {
		if len(m.Value) == 0 {
			return nil // it was asked only whether anybody is there
		}
		select {
		case got <- fmt.Sprintf("the reader of %s* got %s: %s", prefix, m.Name(), m.Value):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	host.Handle(press.Subscription(prefix), show, host.MaxAttempts(3), host.RetryTo(again.To(prefix)))
	host.Handle(again.Subscription(prefix), show, host.MaxAttempts(3))
}

// expect returns when somebody reads what a publisher publishes.
func expect(ctx context.Context, p *host.Publisher[[]byte]) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		r, err := p.Publish(ctx, nil)
		if err != nil || !r.Unrouted {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// publish publishes items and prints what was got, and what nobody reads.
func publish(ctx context.Context, publishers map[string]*host.Publisher[[]byte], items []item, got <-chan string) error {
	for _, i := range items {
		r, err := publishers[i.name].Publish(ctx, []byte(i.text))
		if err != nil {
			return err
		}
		if r.Unrouted {
			fmt.Printf("nobody reads %s\n", i.name)
			continue
		}
		select {
		case line := <-got:
			fmt.Println(line)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
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
