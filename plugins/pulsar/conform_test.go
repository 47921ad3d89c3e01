// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/outside"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/pluginapi/plugintest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// Subscriptions of each type, with connections that are cut, a broker that is
// stopped and started again, and a topic that takes nothing: what is published is
// read by the library itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	stalled := full(t, broker.Broker(t))
	collect := outside.Collect([]string{programtest.Path(t, "github.com/longshore-go/longshore/internal/pulsarbroker/longshore-pulsar-outside"), "collect"})
	const timeout = core.Duration(3 * time.Second)
	for _, o := range []settings.SubscribeOptions{
		{Type: settings.TypeShared},
		{Type: settings.TypeKeyShared, AckTimeout: timeout},
		{Type: settings.TypeFailover, AckTimeout: timeout},
	} {
		t.Run(o.Type, func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			if o.Type == settings.TypeShared { // it is stopped and started again
				b = pulsarbroker.Start(t, pulsarbroker.Config{})
				full(t, b)
			}
			cut := proxy.Start(t, b.Address())
			s := plugintest.Subject{
				Path:     pluginPath(t),
				Settings: settings.Settings{URL: settings.URL(cut.URL()), DefaultSubscription: "conform"}, Options: o,
				Stalled: stalled,
				Collect: func(ctx context.Context, at plugintest.Place, ready func(), got func(core.Message)) error {
					return collect(ctx, conform.Place(at), ready, got)
				},
				Disconnect: func(context.Context, plugintest.Place) error {
					cut.Cut()
					return nil
				},
			}
			if o.Type == settings.TypeShared {
				s.Restart = func(context.Context, plugintest.Place) error {
					b.Stop()
					b.Start()
					return nil
				}
			}
			plugintest.Run(t, s)
		})
	}
}

// full returns a topic whose quota is used up, so that the broker makes publishers
// wait.
func full(t *testing.T, b *pulsarbroker.Broker) string {
	t.Helper()
	const namespace = "public/full"
	const topic = namespace + "/t"
	b.CreateNamespace(namespace)
	b.Quota(namespace, 10, "producer_request_hold")
	b.CreateTopic(topic)
	b.CreateSubscription(topic, "nobody")
	client, err := lib.NewClient(lib.ClientOptions{URL: b.PlainURL(), Logger: log.DefaultNopLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p, err := client.CreateProducer(lib.ProducerOptions{Topic: topic, SendTimeout: -1, DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Send(t.Context(), &lib.ProducerMessage{Payload: make([]byte, 100)}); err != nil {
		t.Fatal(err)
	}
	return topic
}
