// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/peer"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// mqttEnd is a client under measurement.
type mqttEnd interface {
	ask() (peer.State, error)
	// publish begins to publish: as fast as it goes, or one message every so often.
	publish(messages int, every time.Duration) error
	// plugin is the process of its plugin, 0 = it has none.
	plugin() int
	close() error
}

// mqttPeer is a process of its own.
type mqttPeer struct{ peerEnd }

func (p mqttPeer) publish(messages int, every time.Duration) error {
	_, err := p.Tell(fmt.Sprintf("%d %v", messages, every))
	return err
}

// mqttHost is a host with its plugin: this process, and a child.
type mqttHost struct {
	hostEnd
	arrived peer.Arrivals
	orders  chan int // of messages
}

// openMQTT starts a host with the plugin as an endpoint.
func openMQTT(plugin, address string) (*mqttHost, *host.Host, *host.Endpoint) {
	e := &mqttHost{orders: make(chan int, 1)}
	h := host.New(host.WithDrainLimit(endLimit), host.WithLogger(slog.New(&pidHandler{pid: &e.pid})))
	on := h.Endpoint("bench", host.Plugin{Name: "mqtt", Path: plugin}, map[string]any{
		"url": "mqtt://" + address, "client_id": "bench",
	})
	return e, h, on
}

// serve runs the host until it is closed.
func (e *mqttHost) serve(ctx context.Context, h *host.Host, task func(ctx context.Context) error) error {
	e.run = runHost(ctx, h)
	if err := e.run.until(ctx, func() bool { return h.Health().Ready }); err != nil {
		return errors.Join(err, e.run.end())
	}
	ctx, e.stop = context.WithCancel(ctx)
	if task != nil {
		e.tasks.Go(func() { e.err = task(ctx) })
	}
	return nil
}

// openMQTTConsumer starts a host that handles the messages of a row; window is
// that of its subscription, 0 for the default.
func openMQTTConsumer(ctx context.Context, plugin, address string, row MQTTRow, window int) (*mqttHost, error) {
	e, h, on := openMQTT(plugin, address)
	s := on.Subscription(source.Options{}.Messages()[0].Name, host.Options(map[string]any{"qos": row.QoS}), host.Window(window, 0))
	host.Handle(s, func(_ context.Context, m *host.Message[[]byte]) error {
		if len(m.Value) != row.Payload {
			return host.Drop(errEmpty)
		}
		e.arrived.Add(1, m.Value)
		return nil
	})
	return e, e.serve(ctx, h, nil)
}

// openMQTTPublisher starts a host that publishes the messages of a row.
func openMQTTPublisher(ctx context.Context, plugin, address string, row MQTTRow) (*mqttHost, error) {
	e, h, on := openMQTT(plugin, address)
	messages := source.Options{Payload: row.Payload, Headers: row.Headers}.Messages()
	to := host.To[core.Message](h, on.To(messages[0].Name), host.InFlight(Base.Window, openBytes))
	var options []host.SendOption
	if row.QoS != 1 { // the default
		options = append(options, host.WithOptions(map[string]any{"qos": row.QoS}))
	}
	return e, e.serve(ctx, h, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case n := <-e.orders:
				if err := e.fulfil(ctx, to, messages, n, options); err != nil {
					return err
				}
			}
		}
	})
}

// fulfil publishes as fast as there is room, and waits for the last receipt.
func (e *mqttHost) fulfil(ctx context.Context, to *host.Publisher[core.Message], messages []core.Message, n int, options []host.SendOption) error {
	var last *host.Pending
	for i := range n {
		p, err := to.PublishAsync(ctx, messages[i%len(messages)], options...)
		if err != nil {
			return unexpected(ctx, err)
		}
		last = p
	}
	_, err := last.Receipt(ctx)
	return unexpected(ctx, err)
}

func (e *mqttHost) ask() (peer.State, error) {
	s, err := e.hostEnd.ask()
	e.arrived.Tell(&s)
	return s, err
}

func (e *mqttHost) publish(messages int, _ time.Duration) error {
	e.orders <- messages
	return nil
}
