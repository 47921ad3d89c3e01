// SPDX-License-Identifier: Apache-2.0

// Command longshore-bench-pulsar is a client of a Pulsar broker, for the
// benchmarks:
//
//	longshore-bench-pulsar LIBRARY fill|publish|subscribe URL TOPIC BATCHED PAYLOAD HEADERS
//
// LIBRARY is client, pulsar-client-go with what our transport sets; defaults, the
// same with its own defaults; or longshore, our transport without SDK and host.
// BATCHED says whether what is published travels in batches. A subscription is a
// new one of its own, from the beginning of the topic. To fill is to publish to a
// topic that is made to keep it.
//
// It prints its address as JSON once it is connected. Then, for each line on its
// standard input, it prints what it has done since it started, until that ends.
// Who publishes takes "N" on a line: it begins to publish that many messages;
// "N EVERY" is one message each time that duration has passed, with the time in
// it. A message is published when its receipt is there.
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
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/bench/peer"
	"github.com/longshore-go/longshore/internal/bench/source"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-bench-pulsar:", err)
		os.Exit(1)
	}
}

// client is one client.
type client struct {
	id       string
	url      string
	topic    string
	batched  bool
	messages []core.Message // that take turns
	arrived  peer.Arrivals  // at a subscriber, or as receipts
}

// order is what is to be published.
type order struct {
	messages int
	every    time.Duration // 0 = as fast as it goes
}

// role is what a client does in a library: connected is called once it is, and
// orders say what to publish.
type role func(ctx context.Context, connected func(), orders <-chan order) error

// arguments is how many there are.
const arguments = 7

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != arguments {
		return fmt.Errorf("got %d arguments: use LIBRARY fill|publish|subscribe URL TOPIC BATCHED PAYLOAD HEADERS", len(args))
	}
	batched, err := strconv.ParseBool(args[4])
	if err != nil {
		return fmt.Errorf("read BATCHED: %w", err)
	}
	var numbers [2]int
	for i, name := range []string{"PAYLOAD", "HEADERS"} {
		if numbers[i], err = strconv.Atoi(args[5+i]); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	c := &client{
		id: fmt.Sprintf("%s-%d", args[0], os.Getpid()), url: args[2], topic: args[3], batched: batched,
		messages: source.Options{Payload: numbers[0], Headers: numbers[1]}.Messages(),
	}
	for i := range c.messages {
		c.messages[i].Name = c.topic
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
	case "client fill":
		return c.fills, nil
	case "client publish":
		return c.publishes(c.sameProducer()), nil
	case "client subscribe":
		return c.subscribes(true), nil
	case "defaults publish":
		return c.publishes(c.producer()), nil
	case "defaults subscribe":
		return c.subscribes(false), nil
	case "longshore publish":
		return c.longshorePublishes, nil
	case "longshore subscribe":
		return c.longshoreSubscribes, nil
	}
	return nil, fmt.Errorf("%s has no role %q: use client, defaults or longshore, and publish or subscribe", library, role)
}

// tell answers until in ends.
func (c *client) tell(in io.Reader, out io.Writer, connected <-chan struct{}, orders chan<- order) error {
	answers := json.NewEncoder(out)
	<-connected
	if err := answers.Encode(peer.Address{Address: c.url}); err != nil {
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
			if err := c.fulfil(ctx, o, publish); err != nil {
				return err
			}
		}
	}
}

// fulfil publishes what an order asks for.
func (c *client) fulfil(ctx context.Context, o order, publish func(m *core.Message) error) error {
	c.arrived.Add(0, nil) // begins
	var ticks <-chan time.Time
	if o.every > 0 {
		t := time.NewTicker(o.every)
		defer t.Stop()
		ticks = t.C
	}
	for i := range o.messages {
		m := c.messages[i%len(c.messages)]
		if ticks != nil {
			select {
			case <-ticks:
			case <-ctx.Done():
				return ctx.Err()
			}
			m.Payload = make([]byte, len(m.Payload)) // others can be under way
			peer.Stamp(m.Payload)
		}
		if err := publish(&m); err != nil {
			return err
		}
	}
	return nil
}
