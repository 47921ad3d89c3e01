// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"strings"
	"testing"

	lib "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// pulsarSub is the subscription of the services.
const pulsarSub = "svc"

// pulsarShared is the broker of the tests that do not end it.
var pulsarShared pulsarbroker.Shared

func pulsarPlugin(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/pulsar/longshore-transport-pulsar")
}

// pulsarPeer is a client of Pulsar's own library at a broker.
type pulsarPeer struct {
	t *testing.T
	b *pulsarbroker.Broker
	lib.Client
}

func newPulsarPeer(t *testing.T, b *pulsarbroker.Broker) *pulsarPeer {
	t.Helper()
	c, err := lib.NewClient(lib.ClientOptions{URL: b.URL(), Logger: log.DefaultNopLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &pulsarPeer{t, b, c}
}

// put publishes messages to a topic; the broker has them when it returns.
func (p *pulsarPeer) put(o lib.ProducerOptions, ms ...*lib.ProducerMessage) {
	p.t.Helper()
	o.SendTimeout = -1 // the library would leave a goroutine for as long
	producer, err := p.CreateProducer(o)
	for tries := 1; err != nil && tries < 3; tries++ {
		// A request that is out when its broker ends has no answer.
		producer, err = p.CreateProducer(o)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer producer.Close()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*patience)
	defer cancel()
	answers := make(chan error, len(ms))
	for _, m := range ms {
		producer.SendAsync(ctx, m, func(_ lib.MessageID, _ *lib.ProducerMessage, err error) { answers <- err })
	}
	for range ms {
		select {
		case err := <-answers:
			if err != nil {
				p.t.Fatal(err)
			}
		case <-ctx.Done():
			p.t.Fatal("the broker does not take what is published")
		}
	}
}

// read returns how often each payload is in a topic.
func (p *pulsarPeer) read(topic string) map[string]int {
	p.t.Helper()
	r, err := p.CreateReader(lib.ReaderOptions{Topic: topic, StartMessageID: lib.EarliestMessageID()})
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*patience)
	defer cancel()
	seen := map[string]int{}
	for r.HasNext() {
		m, err := r.Next(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		seen[string(m.Payload())]++
	}
	return seen
}

// topicsOf is what the names of a test's own topics begin with.
func topicsOf(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "-", " ", "-", "Test", "").Replace(t.Name())) + "-"
}

// pulsarEndpoint is an endpoint of a child.
func pulsarEndpoint(t *testing.T, b *pulsarbroker.Broker) childEndpoint {
	t.Helper()
	return childEndpoint{
		Name: "in", Plugin: "pulsar", Path: pulsarPlugin(t),
		Settings: map[string]any{"url": b.URL(), "default_subscription": pulsarSub},
	}
}

// fromEarliest are options of a type whose subscription has all that there is.
func fromEarliest(kind string) settings.SubscribeOptions {
	return settings.SubscribeOptions{Type: kind, InitialPosition: settings.PositionEarliest}
}
