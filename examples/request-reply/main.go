// SPDX-License-Identifier: Apache-2.0

// Command request-reply asks over MQTT and gets answers: a request names the topic
// that its reply is to be published to. main_test.go tests it.
//
// It needs a broker, such as Debian's mosquitto:
//
//	make build
//	LONGSHORE_PLUGIN_DIR=$PWD/bin go run ./examples/request-reply mqtt://127.0.0.1:1883 2>log
//
// Both sides are in one process here, as two clients of the broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Question asks for a berth for a ship.
type Question struct {
	Ship   string
	Metres int // its length
}

// Answer is the berth, or why there is none: an error of the handler would be no
// answer.
type Answer struct {
	Berth string `json:",omitempty"`
	Error string `json:",omitempty"`
}

func main() {
	url := "mqtt://127.0.0.1:1883"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, mqtt.URL(url)); err != nil {
		log.Fatal(err)
	}
}

// run asks for berths and prints what comes of it.
func run(ctx context.Context, url mqtt.URL) error {
	h := host.New()
	answer(h, url)
	ships := h.Endpoint("ships", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: url, ClientID: "request-reply-ships",
	})
	stop, err := serve(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	for _, q := range []Question{{"Thalia", 90}, {"Emma", 397}, {"Ghost", 40}, {"Dora", 21}} {
		fmt.Printf("%s: %s\n", q.Ship, ask(ctx, h, ships.To(berths), q))
	}
	return nil
}

// berths is the topic of questions.
const berths = "harbour/berths"

// slow is how long the office looks for what is not there.
const slow = time.Second

// answer declares the harbour's office. Of several such services in the same group
// each question goes to one.
func answer(h *host.Host, url mqtt.URL) {
	office := h.Endpoint("office", host.Plugin{Name: "mqtt"}, mqtt.Settings{
		URL: url, ClientID: "request-reply-office",
	})
	questions := office.Subscription(berths, host.Options(mqtt.SubscribeOptions{Group: "office"}))
	host.HandleReply(questions, func(ctx context.Context, m *host.Message[Question]) (Answer, error) {
		switch {
		case m.Value.Ship == "Ghost":
			search := time.NewTimer(slow)
			defer search.Stop()
			select {
			case <-search.C:
				return Answer{Error: "no such ship"}, nil
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			}
		case m.Value.Metres > 300:
			return Answer{Error: "too long for this harbour"}, nil
		case m.Value.Metres > 50:
			return Answer{Berth: "pier 4"}, nil
		}
		return Answer{Berth: "the basin"}, nil
	}, host.Workers(4), host.MaxAttempts(2))
}

// ask asks a question and returns what comes of it.
func ask(ctx context.Context, h *host.Host, to core.Destination, q Question) string {
	a, err := host.Request[Question, Answer](ctx, h, to, q, host.WithTimeout(300*time.Millisecond))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case err != nil:
		return err.Error()
	case a.Error != "":
		return a.Error
	}
	return a.Berth
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
