// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"log/slog"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// openPulsar starts a host with the plugin as an endpoint.
func openPulsar(plugin, url string, batched bool) (*clientHost, *host.Host, *host.Endpoint) {
	e := &clientHost{orders: make(chan sendOrder, 1)}
	h := host.New(host.WithStartLimit(startLimit), host.WithDrainLimit(endLimit), host.WithLogger(slog.New(&pidHandler{pid: &e.pid})))
	on := h.Endpoint("bench", host.Plugin{Name: "pulsar", Path: plugin}, settings.Settings{
		URL: settings.URL(url), Batching: batched,
	})
	return e, h, on
}

// openPulsarConsumer starts a host that handles the messages of a row on a new
// subscription, from the topic's beginning.
func openPulsarConsumer(ctx context.Context, plugin, url, topic, subscription string, row PulsarRow) (*clientHost, error) {
	e, h, on := openPulsar(plugin, url, row.Batched)
	host.Handle(on.Subscription(topic, earliest(subscription)), func(_ context.Context, m *host.Message[[]byte]) error {
		if len(m.Value) != row.Payload {
			return host.Drop(errEmpty)
		}
		e.arrived.Add(1, m.Value)
		return nil
	})
	return e, e.serve(ctx, h, nil)
}

// earliest are the options of a subscription that begins with a topic.
func earliest(subscription string) host.SubscriptionOption {
	return host.Options(settings.SubscribeOptions{Subscription: subscription, InitialPosition: settings.PositionEarliest})
}

// openPulsarPublisher starts a host that publishes the messages of a row.
func openPulsarPublisher(ctx context.Context, plugin, url, topic string, row PulsarRow) (*clientHost, error) {
	e, h, on := openPulsar(plugin, url, row.Batched)
	messages := source.Options{Payload: row.Payload, Headers: row.Headers}.Messages()
	to := host.To[core.Message](h, on.To(topic), host.InFlight(Base.Window, openBytes))
	return e, e.serve(ctx, h, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case o := <-e.orders:
				e.arrived.Add(0, nil)
				if err := e.fulfil(ctx, to, messages, o, nil); err != nil {
					return err
				}
				e.arrived.Add(o.messages, nil)
			}
		}
	})
}
