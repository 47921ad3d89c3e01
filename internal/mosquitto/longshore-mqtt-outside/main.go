// SPDX-License-Identifier: Apache-2.0

// Command longshore-mqtt-outside is the far end of `longshore conform` over MQTT:
// "collect" prints what is published to LONGSHORE_CONFORM_NAME, as a collector of
// the suite does. It is a client of eclipse/paho.golang, so that nothing of ours
// reads what ours has written.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/eclipse/paho.golang/paho"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-mqtt-outside:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 || args[0] != "collect" {
		return errors.New("usage: longshore-mqtt-outside collect")
	}
	var settings struct{ URL string }
	if err := json.Unmarshal([]byte(os.Getenv("LONGSHORE_CONFORM_SETTINGS")), &settings); err != nil {
		return fmt.Errorf("read LONGSHORE_CONFORM_SETTINGS: %w", err)
	}
	u, err := url.Parse(settings.URL)
	if err != nil {
		return err
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	return collect(ctx, nc, os.Getenv("LONGSHORE_CONFORM_NAME"), os.Stdout)
}

// received is the line of a message; []byte is base64.
type received struct {
	Headers [][2]any `json:"headers"`
	Payload []byte   `json:"payload"`
}

// collect prints what is published to a topic until ctx ends.
func collect(ctx context.Context, nc net.Conn, topic string, to io.Writer) error {
	out := bufio.NewWriter(to)
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	print := func(line any) { // by one goroutine at a time: the client's router, once it is ready
		text, err := json.Marshal(line)
		if err == nil {
			_, err = out.Write(append(text, '\n'))
		}
		if err = errors.Join(err, out.Flush()); err != nil {
			fail(err)
		}
	}
	ready := make(chan struct{})
	c := paho.NewClient(paho.ClientConfig{
		Conn: nc, OnClientError: fail,
		OnServerDisconnect: func(d *paho.Disconnect) { fail(fmt.Errorf("disconnected: reason 0x%02X", d.ReasonCode)) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			<-ready
			print(received{Headers: headersOf(p.Packet.Properties), Payload: append([]byte{}, p.Packet.Payload...)})
			return true, nil
		}},
	})
	if _, err := c.Connect(ctx, &paho.Connect{CleanStart: true, KeepAlive: 60}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if _, err := c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}); err != nil {
		return fmt.Errorf("subscribe to %q: %w", topic, err)
	}
	print(map[string]bool{"ready": true})
	close(ready)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return c.Disconnect(&paho.Disconnect{})
	}
}

// headersOf are the properties that carry headers, those of the protocol first.
func headersOf(p *paho.PublishProperties) [][2]any {
	headers := [][2]any{}
	if p == nil {
		return headers
	}
	add := func(name, value string) { headers = append(headers, [2]any{name, []byte(value)}) }
	for _, special := range [][2]string{{"content-type", p.ContentType}, {"reply-to", p.ResponseTopic}, {"correlation-id", string(p.CorrelationData)}} {
		if special[1] != "" {
			add(special[0], special[1])
		}
	}
	for _, u := range p.User {
		add(u.Key, u.Value)
	}
	return headers
}
