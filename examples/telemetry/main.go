// SPDX-License-Identifier: Apache-2.0

// Command telemetry reads what sensors publish over MQTT, all of them with one
// filter, and tries again what it cannot place yet. main_test.go tests it.
//
// It needs a broker, such as Debian's mosquitto:
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/telemetry mqtt://127.0.0.1:1883 2>log
//
// Sensors and station are in one process here, as two clients of the broker.
package main

import (
	"context"
	"errors"
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
)

// Reading is what a sensor has measured.
type Reading struct {
	Metres float64 `json:"metres"`
}

// level is where a reading comes from.
type level struct {
	gauge  string
	metres float64
}

func main() {
	url := "mqtt://127.0.0.1:1883"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	levels := []level{{"lock", 4.2}, {"basin", 6.8}, {"pier-4", 5.1}, {"lock", 4.3}}
	if err := run(ctx, mqtt.URL(url), levels); err != nil {
		log.Fatal(err)
	}
}

// run publishes readings and prints what the station makes of them.
func run(ctx context.Context, url mqtt.URL, levels []level) error {
	h := host.New()
	placed := make(chan string)
	read(h, url, placed)
	sensors := h.Endpoint("sensors", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: url, ClientID: "telemetry-sensors",
	})
	gauges := map[string]*host.Publisher[Reading]{}
	for _, l := range levels {
		gauges[l.gauge] = host.To[Reading](h, sensors.To("harbour/"+l.gauge+"/level"))
	}
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	// A reading that is lost is followed by the next one, so QoS 0 is enough.
	qos0 := host.WithOptions(mqtt.PublishOptions{QoS: new(0)})
	for _, l := range levels {
		if _, err := gauges[l.gauge].Publish(ctx, Reading{l.metres}, qos0); err != nil {
			return err
		}
		select {
		case line := <-placed:
			fmt.Println(line)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// allGauges is the filter that the readings of all gauges go through.
const allGauges = "harbour/+/level"

// read declares the station.
func read(h *host.Host, url mqtt.URL, placed chan<- string) {
	station := h.Endpoint("station", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: url, ClientID: "telemetry-station",
	})
	readings := station.Subscription(allGauges, host.Options(mqtt.SubscribeOptions{
		Filter: true, // the name has a wildcard
		QoS:    new(0),
	}))
	c := chart{"lock": "the lock", "basin": "the basin"}
	host.Handle(readings, func(ctx context.Context, m *host.Message[Reading]) error {
		place, err := c.place(gauge(m.Name()))
		if err != nil {
			return err // a plain error is a retry
		}
		select {
		case placed <- fmt.Sprintf("%s: %.1f m at attempt %d", place, m.Value.Metres, m.Attempt()):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, host.MaxAttempts(3), host.RetryToFunc(func(m core.Message, _ uint64) (core.Destination, error) {
		// Nothing can be published to a filter: a copy goes to the topic that its
		// message came from.
		return station.To(m.Name), nil
	}))
}

// gauge is the name within a topic.
func gauge(topic string) string { return strings.Split(topic, "/")[1] }

// chart says where gauges are. It needs no lock: a subscription has one worker
// unless it says otherwise.
type chart map[string]string

// errUnknown says that a gauge is not on the chart yet.
var errUnknown = errors.New("a new gauge: it is being looked up")

// place returns where a gauge is. Of one that is new it is not known at once.
func (c chart) place(gauge string) (string, error) {
	place, known := c[gauge]
	if !known {
		c[gauge] = "a new gauge, " + gauge
		return "", errUnknown
	}
	return place, nil
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
