// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/transport"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/pluginapi"
)

// transportName is what logs call the transport.
const transportName = "hosttest"

// standIn is the memory transport in the place of any other: it takes whatever
// settings and options that one would.
type standIn struct {
	broker *Broker
	memory *transport.Transport
	source []core.Capabilities
}

var _ process.Watched = (*standIn)(nil)

func newTransport(b *Broker, source []core.Capabilities) *standIn {
	return &standIn{broker: b, source: source, memory: transport.New(
		transport.Dial(b.queues.Dial), transport.Match(b.match), transport.Telling(),
	)}
}

// Describe says that anything is possible.
func (t *standIn) Describe() pluginapi.Spec {
	s := t.memory.Describe()
	s.Name = transportName
	s.Settings, s.Subscription, s.Publish = pluginapi.AnySchema(), pluginapi.AnySchema(), pluginapi.AnySchema()
	return s
}

// Configure binds the broker's settings, not those of the host.
func (t *standIn) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	o, err := pluginapi.EncodeOptions(t.broker.settings(t.source))
	if err != nil {
		return nil, err
	}
	s.Options = o
	return t.memory.Configure(s)
}

// Began keeps what Crash kills.
func (t *standIn) Began(endpoint string, g process.Generation) { t.broker.began(endpoint, g) }
