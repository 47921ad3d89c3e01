// SPDX-License-Identifier: Apache-2.0

// Command bridge lets the ships of a harbour, which speak MQTT, and its office, on
// Pulsar, hear each other on one topic: what either side publishes is there on both,
// once. main_test.go tests it.
//
// It needs two brokers, such as Debian's mosquitto and a Pulsar standalone:
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/bridge mqtt://127.0.0.1:1883 pulsar://127.0.0.1:6650 2>log
//
// Ships, office and bridge are in one process here, each with plugins of its own.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
	pulsar "github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// over is the last thing that each side says: what it said before is through.
const over = "over"

func main() {
	sea, land := "mqtt://127.0.0.1:1883", "pulsar://127.0.0.1:6650"
	if len(os.Args) > 2 {
		sea, land = os.Args[1], os.Args[2]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ships := []string{"Thalia asks for a berth", "Thalia is at the buoy", over}
	office := []string{"berth 4 is free", "the pilot comes at noon", over}
	if err := run(ctx, mqtt.URL(sea), pulsar.URL(land), ships, office); err != nil {
		log.Fatal(err)
	}
}

// run has both sides say something and prints what they hear of each other.
func run(ctx context.Context, seaURL mqtt.URL, landURL pulsar.URL, fromShips, fromOffice []string) error {
	h := host.New()
	n := bridge(h, seaURL, landURL)
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	h = host.New()
	sea := h.Endpoint("sea", host.Plugin{Name: "mqtt"}, mqtt.Settings{URL: seaURL, ClientID: "bridge-ships"})
	land := h.Endpoint("land", host.Plugin{Name: "pulsar"}, pulsar.Settings{URL: landURL, DefaultSubscription: "bridge-office"})
	atSea, onLand := make(chan string), make(chan string)
	listen(sea.Subscription(seaTopic), atSea)
	listen(land.Subscription(landTopic), onLand)
	ships, office := host.To[[]byte](h, sea.To(seaTopic)), host.To[[]byte](h, land.To(landTopic))
	stop, err = serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	for _, side := range []struct {
		says  *host.Publisher[[]byte]
		words []string
		heard <-chan string
		by    string
	}{{ships, fromShips, onLand, "the office hears"}, {office, fromOffice, atSea, "the ships hear"}} {
		for _, word := range side.words {
			if _, err := side.says.Publish(ctx, []byte(word)); err != nil {
				return err
			}
		}
		heard, err := until(ctx, side.heard)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", side.by, strings.Join(heard, "; "))
	}
	fmt.Printf("%d messages have crossed\n", n.Load())
	return nil
}

// until collects what is heard, up to the last word.
func until(ctx context.Context, heard <-chan string) (words []string, err error) {
	for {
		select {
		case word := <-heard:
			words = append(words, word)
			if word == over {
				return words, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// listen passes on what comes from the other side.
func listen(s *host.Subscription, heard chan<- string) {
	host.Handle(s, func(ctx context.Context, m *host.Message[core.Message]) error {
		if m.Header(crossed) == "" {
			return nil // our own side's
		}
		select {
		case heard <- string(m.Payload()):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
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
