// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"testing"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// pulsar attaches the Pulsar transport.
func (s *service) pulsar(name, url string, change func(*settings.Settings)) *host.Endpoint {
	s.t.Helper()
	set := settings.Settings{URL: settings.URL(url), DefaultSubscription: pulsarSub}
	if change != nil {
		change(&set)
	}
	return s.Endpoint(name, host.Plugin{Name: "pulsar", Path: pulsarPlugin(s.t)}, set)
}

// one publishes payloads to a topic, in entries of one message, in order.
func (p *pulsarPeer) one(topic string, payloads ...string) {
	p.t.Helper()
	var ms []*lib.ProducerMessage
	for _, text := range payloads {
		ms = append(ms, &lib.ProducerMessage{Payload: []byte(text)})
	}
	p.put(lib.ProducerOptions{Topic: topic, DisableBatching: true}, ms...)
}

// sharing runs a test with types of subscriptions, side by side.
func sharing(t *testing.T, kinds []string, f func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, kind)
		})
	}
}
