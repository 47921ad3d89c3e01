// SPDX-License-Identifier: Apache-2.0

// Command longshore-bench-mqtt is a client of an MQTT server, for the
// benchmarks:
//
//	longshore-bench-mqtt LIBRARY publish|subscribe ADDRESS QOS PAYLOAD HEADERS
//
// LIBRARY is autopaho, the client of eclipse/paho.golang as it is; buffered, the
// same over a connection with buffers; longshore, our transport without SDK and
// host; or plain, which writes packets that are ready and reads what comes
// without looking at it: it feeds and counts at next to no cost. ADDRESS is that
// of the server, HOST:PORT.
//
// It prints its address as JSON once it is connected. Then, for each line on its
// standard input, it prints what it has done since it started, until that ends.
// A publisher takes "N" on a line: it begins to publish that many messages;
// "N EVERY" is one message each time that duration has passed, with the time in
// it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/peer"
	"github.com/longshore-go/longshore/internal/bench/source"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-bench-mqtt:", err)
		os.Exit(1)
	}
}

// client is one client.
type client struct {
	id       string
	address  string
	qos      byte
	messages []core.Message // that take turns
	arrived  peer.Arrivals  // at a subscriber
	sent     atomic.Uint64  // by a publisher
}

// order is what a publisher is told to publish.
type order struct {
	messages int
	every    time.Duration // 0 = as fast as it goes
}

// role is what a client does in a library: connected is called once it is, and
// orders tell a publisher what to do.
type role func(ctx context.Context, connected func(), orders <-chan order) error

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 6 {
		return fmt.Errorf("got %d arguments: use LIBRARY publish|subscribe ADDRESS QOS PAYLOAD HEADERS", len(args))
	}
	var numbers [3]int
	for i, name := range []string{"QOS", "PAYLOAD", "HEADERS"} {
		n, err := strconv.Atoi(args[3+i])
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		numbers[i] = n
	}
	c := &client{
		id: fmt.Sprintf("%s-%s-%d", args[0], args[1], os.Getpid()), address: args[2], qos: byte(numbers[0]), //nolint:gosec // 0 to 2
		messages: source.Options{Payload: numbers[1], Headers: numbers[2]}.Messages(),
	}
	does, err := c.role(args[0], args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connected, failed := make(chan struct{}), make(chan error, 1)
	orders := make(chan order, 1)
	go func() { failed <- does(ctx, func() { close(connected) }, orders) }()
	told := make(chan error, 1)
	go func() { told <- c.tell(in, out, connected, orders) }()
	select {
	case err := <-failed:
		return err
	case err := <-told: // whatever is under way is of no use to anybody
		return err
	}
}

// role finds what a library does.
func (c *client) role(library, role string) (role, error) {
	switch library + " " + role {
	case "plain publish":
		return c.feed, nil
	case "plain subscribe":
		return c.sink, nil
	case "autopaho publish":
		return c.autopahoPublishes(false), nil
	case "autopaho subscribe":
		return c.autopahoSubscribes(false), nil
	case "longshore publish":
		return c.longshorePublishes, nil
	case "longshore subscribe":
		return c.longshoreSubscribes, nil
	case "buffered publish":
		return c.autopahoPublishes(true), nil
	case "buffered subscribe":
		return c.autopahoSubscribes(true), nil
	}
	return nil, fmt.Errorf("%s has no role %q: use autopaho, buffered, longshore or plain, and publish or subscribe", library, role)
}

// tell answers until in ends.
func (c *client) tell(in io.Reader, out io.Writer, connected <-chan struct{}, orders chan<- order) error {
	answers := json.NewEncoder(out)
	<-connected
	if err := answers.Encode(peer.Address{Address: c.address}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := take(lines.Text(), orders); err != nil {
			return err
		}
		used, err := source.Used()
		if err != nil {
			return err
		}
		s := peer.State{CPU: used.CPU, Allocs: used.Allocs}
		c.arrived.Tell(&s)
		s.Messages += c.sent.Load()
		if err := answers.Encode(s); err != nil {
			return err
		}
	}
	return lines.Err()
}

// take reads an order, "" = none.
func take(line string, orders chan<- order) (err error) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return nil
	}
	var o order
	if o.messages, err = strconv.Atoi(f[0]); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	if len(f) > 1 {
		if o.every, err = time.ParseDuration(f[1]); err != nil {
			return fmt.Errorf("read order: %w", err)
		}
	}
	orders <- o
	return nil
}

// each calls publish for each message of each order.
func (c *client) each(ctx context.Context, orders <-chan order, publish func(m *core.Message) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o := <-orders:
			if err := c.fulfil(o, publish); err != nil {
				return err
			}
		}
	}
}

// fulfil publishes what an order asks for.
func (c *client) fulfil(o order, publish func(m *core.Message) error) error {
	var ticks <-chan time.Time
	if o.every > 0 {
		t := time.NewTicker(o.every)
		defer t.Stop()
		ticks = t.C
	}
	for i := range o.messages {
		m := c.messages[i%len(c.messages)]
		if ticks != nil {
			<-ticks
			m.Payload = make([]byte, len(m.Payload)) // others can be under way
			peer.Stamp(m.Payload)
		}
		if err := publish(&m); err != nil {
			return err
		}
	}
	return nil
}
