// SPDX-License-Identifier: Apache-2.0

// Package zmq is the ZeroMQ transport: messages go from peer to peer over ZMTP
// 3.0, without a broker. A message has three frames: its name, its headers as
// lines of text, its payload.
//
// An endpoint has one pattern and one side. In a queue each message goes to one
// of the peers that are connected, in a fan-out to all whose subscription is a
// prefix of its name, and rpc is requests with replies. It listens on an address
// or dials some; which of the two peers does is free. An endpoint with a
// subscription reads, one without sends.
//
// # Caveats
//
// Nothing is acknowledged: a message that its peer has taken is gone from its
// sender, and what a process has read and not handled when it ends is lost. A
// bound queue or fan-out that reads takes copies under its own name, which only
// this process gets. Connections are neither encrypted nor authenticated.
package zmq

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Name is the transport's name.
const Name = "zmq"

// version is the plugin's own.
const version = "0.1.0"

// The limits of one message.
const (
	// MaxMessage is the most bytes of payload and headers, the protocol's own
	// limit. An endpoint may have a lower one.
	MaxMessage = 64 << 20
	// MaxHeaders is the most headers.
	MaxHeaders = message.MaxHeaders
	// maxName is the most bytes of a name, in both directions.
	maxName = message.MaxName
	// frameRoom is what the frames of a message may have beyond its payload and
	// headers: the name, and what separates headers.
	frameRoom = 512 << 10
)

// Transport is the ZeroMQ transport.
type Transport struct{}

// New returns the transport.
func New() *Transport { return &Transport{} }

// Describe says what an endpoint can do at most.
func (t *Transport) Describe() pluginapi.Spec {
	return pluginapi.Spec{
		Name:     Name,
		Version:  version,
		Settings: pluginapi.SchemaOf[settings.Settings](),
		Ceilings: []core.Capabilities{{Address: "the subscription's name, where it binds", Order: core.OrderTotal}},
		Publishing: core.Publishing{
			Confirms: core.ConfirmHandedOver, Retains: core.RetainProcess, Headers: core.HeadersNativeText, Repeats: true,
			MaxBytes: MaxMessage, MaxHeaders: MaxHeaders,
		},
		Requests:   true,
		LinkStates: true,
	}
}

// Configure binds the settings and refuses those that cannot work, all at once.
func (t *Transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	var set settings.Settings
	if err := s.Bind(&set); err != nil {
		return nil, err
	}
	e := newEndpoint(s.Endpoint, set, s.Logger)
	if wrong := e.check(); len(wrong) > 0 {
		return nil, &core.Fault{Code: core.FaultInvalid, Message: "configure zmq", Diagnostics: wrong}
	}
	return e, nil
}
