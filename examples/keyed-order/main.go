// SPDX-License-Identifier: Apache-2.0

// Command keyed-order shows what a KeyShared subscription of Pulsar keeps: two
// desks share the reports of ships, each ship is at one desk, and what a ship
// reports is handled in its order, though both desks handle several ships at a time.
// main_test.go tests it.
//
// It needs a broker, such as a Pulsar standalone:
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/keyed-order pulsar://127.0.0.1:6650 2>log
//
// The desks are in one process here, each with a plugin of its own, as if they were
// on two machines.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/host"
	pulsar "github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// reports is the topic.
const reports = "keyed-order-reports"

// Entry is what a desk has handled.
type Entry struct{ Ship, Desk, Step string }

func main() {
	url := "pulsar://127.0.0.1:6650"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ships := []string{"Aglaia", "Euphrosyne", "Hermes", "Iris", "Nike", "Thalia"}
	if err := run(ctx, pulsar.URL(url), ships, "moored", "unloaded", "loaded", "cleared", "sailed"); err != nil {
		log.Fatal(err)
	}
}

// run has ships report and prints what the desks have handled of each.
func run(ctx context.Context, url pulsar.URL, ships []string, steps ...string) error {
	entries := make(chan Entry)
	for _, name := range []string{"north", "south"} {
		h := host.New()
		desk(h, url, name, entries)
		stop, err := serve(ctx, h)
		if err != nil {
			return err
		}
		defer stop()
	}
	h := host.New()
	fleet := h.Endpoint("fleet", host.Plugin{Name: "pulsar"}, pulsar.Settings{URL: url})
	say := host.To[string](h, fleet.To(reports))
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	for _, step := range steps {
		for _, ship := range ships { // all ships between one another
			if _, err := say.Publish(ctx, step, host.WithOptions(pulsar.PublishOptions{Key: ship})); err != nil {
				return err
			}
		}
	}
	handled := map[string][]Entry{}
	for range len(steps) * len(ships) {
		select {
		case e := <-entries:
			handled[e.Ship] = append(handled[e.Ship], e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, ship := range ships {
		fmt.Println(line(handled[ship]))
	}
	return nil
}

// line tells what was handled of a ship.
func line(es []Entry) string {
	var desks, steps []string
	for _, e := range es {
		if !slices.Contains(desks, e.Desk) {
			desks = append(desks, e.Desk)
		}
		steps = append(steps, e.Step)
	}
	where := "at one desk"
	if len(desks) > 1 {
		where = "at " + strings.Join(desks, " and ")
	}
	return fmt.Sprintf("%s, %s: %s", es[0].Ship, where, strings.Join(steps, ", "))
}

// desk declares one of those that share the reports.
func desk(h *host.Host, url pulsar.URL, name string, entries chan<- Entry) {
	broker := h.Endpoint("broker", host.Plugin{Name: "pulsar"}, pulsar.Settings{URL: url})
	in := broker.Subscription(reports, host.Options(pulsar.SubscribeOptions{
		Subscription: "desks",
		Type:         pulsar.TypeKeyShared, // a key is at one consumer, in order
	}))
	host.Handle(in, func(ctx context.Context, m *host.Message[string]) error {
		select {
		case <-time.After(rand.N(5 * time.Millisecond)): // some take longer
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case entries <- Entry{Ship: m.Header("partition-key"), Desk: name, Step: m.Value}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, host.Workers(4), host.ByKey()) // four ships at a time, and one report of each
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
