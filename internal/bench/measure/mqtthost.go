// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"log/slog"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// openMQTT starts a host with the plugin as an endpoint.
func openMQTT(plugin, address string) (*clientHost, *host.Host, *host.Endpoint) {
	e := &clientHost{orders: make(chan sendOrder, 1)}
	h := host.New(host.WithStartLimit(startLimit), host.WithDrainLimit(endLimit), host.WithLogger(slog.New(&pidHandler{pid: &e.pid})))
	on := h.Endpoint("bench", host.Plugin{Name: "mqtt", Path: plugin}, map[string]any{
		"url": "mqtt://" + address, "client_id": "bench",
	})
	return e, h, on
}

// openMQTTConsumer starts a host that handles the messages of a row; window is
// that of its subscription, 0 for the default.
func openMQTTConsumer(ctx context.Context, plugin, address string, row MQTTRow, window int) (*clientHost, error) {
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
func openMQTTPublisher(ctx context.Context, plugin, address string, row MQTTRow) (*clientHost, error) {
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
			case o := <-e.orders:
				if err := e.fulfil(ctx, to, messages, o, options); err != nil {
					return err
				}
			}
		}
	})
}
