// SPDX-License-Identifier: Apache-2.0

// Package mqtt is the MQTT 5 transport: messages go over a server, which hands
// each one to all that subscribe to a topic or a filter, and to one member of
// each share group.
//
// A delivery of QoS 1 or 2 is acknowledged by its verdict: ack sends PUBACK or
// PUBREC, in whatever order verdicts come, and nothing else is ever sent. What is
// left without an ack comes again only when the session is resumed. Deliveries of
// QoS 0 are gone when they are handed over.
//
// # Caveats
//
// A session is kept only with clean_start off and a session_expiry; by default
// what is unsettled is lost with the connection. Each delivery that is left
// unsettled keeps one place of receive_maximum until then, which all
// subscriptions of a connection share. What is known of QoS 2 handshakes lies in
// memory: a killed process may see such a message once more. Messages of QoS 0
// that are not handled in time are dropped, counted and warned about.
package mqtt

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Name is the transport's name.
const Name = "mqtt"

// version is the plugin's own.
const version = "0.1.0"

// The limits of one message.
const (
	// MaxMessage is the most bytes of payload and headers, the limit of the
	// contract with a host. An endpoint has a lower one, its max_packet_size.
	MaxMessage = 64 << 20
	// MaxHeaders is the most headers.
	MaxHeaders = 1 << 16
	// packetRoom is what of a packet is kept for all but payload and headers: its
	// topic, the lengths, and what each header takes beside its bytes.
	packetRoom = 512
	// headerRoom is what of a packet a header takes where there are many.
	headerRoom = 64
)

// Transport is the MQTT 5 transport.
type Transport struct{}

// New returns the transport.
func New() *Transport { return &Transport{} }

// Describe says what an endpoint can do at most.
func (t *Transport) Describe() pluginapi.Spec {
	const address = "the subscription's topic"
	return pluginapi.Spec{
		Name:         Name,
		Version:      version,
		Settings:     pluginapi.SchemaOf[settings.Settings](),
		Subscription: pluginapi.SchemaOf[settings.SubscribeOptions](),
		Publish:      pluginapi.SchemaOf[settings.PublishOptions](),
		Ceilings: []core.Capabilities{
			acknowledged(address, true, core.OrderTotal), acknowledged(address, false, core.OrderTotal),
			{Address: address, Order: core.OrderTotal},
		},
		Publishing: core.Publishing{
			Confirms: core.ConfirmStored, Retains: core.RetainTransport, Headers: core.HeadersNativeText, Repeats: true,
			MaxBytes: MaxMessage, MaxHeaders: MaxHeaders,
		},
		Requests:   true,
		LinkStates: true,
	}
}

// acknowledged are the capabilities of deliveries of QoS 1 and 2. What has no ack
// when the connection ends comes again where the session is kept.
func acknowledged(address string, kept bool, order core.OrderMode) core.Capabilities {
	c := core.Capabilities{Ack: core.AckSingle, Address: address, Order: order}
	if kept {
		c.Unsettled = core.UnsettledOnResume
	}
	return c
}

// Configure binds the settings and refuses those that cannot work, all at once.
func (t *Transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	var set settings.Settings
	if err := s.Bind(&set); err != nil {
		return nil, err
	}
	e := newEndpoint(s.Endpoint, set, s.Logger)
	if wrong := e.check(); len(wrong) > 0 {
		return nil, &core.Fault{Code: core.FaultInvalid, Message: "configure mqtt", Diagnostics: wrong}
	}
	return e, nil
}
