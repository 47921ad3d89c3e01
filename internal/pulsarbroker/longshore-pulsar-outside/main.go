// SPDX-License-Identifier: Apache-2.0

// Command longshore-pulsar-outside is the far end of `longshore conform` over
// Pulsar: "collect" prints what is published to LONGSHORE_CONFORM_NAME, as a
// collector of the suite does. It uses apache/pulsar-client-go by itself, so that
// nothing of ours reads what ours has written.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "longshore-pulsar-outside:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 || args[0] != "collect" {
		return errors.New("usage: longshore-pulsar-outside collect")
	}
	var settings struct{ URL string }
	if err := json.Unmarshal([]byte(os.Getenv("LONGSHORE_CONFORM_SETTINGS")), &settings); err != nil {
		return fmt.Errorf("read LONGSHORE_CONFORM_SETTINGS: %w", err)
	}
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: settings.URL, Logger: log.DefaultNopLogger()})
	if err != nil {
		return fmt.Errorf("set up the client: %w", err)
	}
	defer client.Close()
	return collect(ctx, client, os.Getenv("LONGSHORE_CONFORM_NAME"), os.Stdout)
}

// received is the line of a message; []byte is base64.
type received struct {
	Headers [][2]any `json:"headers"`
	Payload []byte   `json:"payload"`
}

// collect prints what is published to a topic until ctx ends.
func collect(ctx context.Context, client pulsar.Client, topic string, to io.Writer) error {
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "collector-" + strconv.Itoa(os.Getpid()), Type: pulsar.Shared, // which waits for delays
	})
	if err != nil {
		return fmt.Errorf("subscribe to %q: %w", topic, err)
	}
	defer func() {
		_ = consumer.Unsubscribe()
		consumer.Close()
	}()
	out := bufio.NewWriter(to)
	print := func(line any) error {
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		_, err = out.Write(append(text, '\n'))
		return errors.Join(err, out.Flush())
	}
	if err := print(map[string]bool{"ready": true}); err != nil {
		return err
	}
	for {
		m, err := consumer.Receive(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("receive: %w", err)
		}
		if err := print(received{Headers: headersOf(m), Payload: append([]byte{}, m.Payload()...)}); err != nil {
			return err
		}
		if err := consumer.Ack(m); err != nil {
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
}

// headersOf are the properties of a message in the order of their names, behind
// what else carries a header.
func headersOf(m pulsar.Message) [][2]any {
	headers := [][2]any{}
	add := func(name, value string) { headers = append(headers, [2]any{name, []byte(value)}) }
	if m.Key() != "" {
		add("partition-key", m.Key())
	}
	if m.OrderingKey() != "" {
		add("pulsar-ordering-key", m.OrderingKey())
	}
	names := make([]string, 0, len(m.Properties()))
	for name := range m.Properties() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, m.Properties()[name])
	}
	return headers
}
