// SPDX-License-Identifier: Apache-2.0

// Package pulsar is the Apache Pulsar transport: messages are kept by topics, and
// each durable subscription of a topic hands every one of them to one of its
// consumers.
//
// Ack and drop acknowledge one message. A requeue asks the broker for the message
// again, at once or after its delay, which the plugin waits with the message
// unacknowledged. On the types shared and key_shared the broker counts deliveries;
// the host applies caps and dead letters by that count.
//
// # Caveats
//
// The count lies in the broker's memory: it begins anew when the broker restarts,
// unloads the topic, or loses the subscription's last consumer. On the types
// exclusive and failover a requeue takes the partition back to its oldest message
// that is not acknowledged. A requeue of one message of a batch that others have
// published brings back all of the batch that is not acknowledged. A topic without
// any subscription keeps nothing.
package pulsar

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// Name is the transport's name.
const Name = "pulsar"

// version is the plugin's own.
const version = "0.1.0"

// The limits of one message.
const (
	// MaxMessage is the most bytes of payload and headers, the limit of the contract
	// with a host. An endpoint has a lower one, its max_message_size.
	MaxMessage = 64 << 20
	// MaxHeaders is the most headers.
	MaxHeaders = 4096
	// MaxDelay bounds deliver_after and the delays of copies, exclusively. The broker
	// has no limit of its own; it keeps an index of what waits in its memory.
	MaxDelay = 365 * 24 * time.Hour
	// maxAckTimeout is the longest ack_timeout.
	maxAckTimeout = 24 * time.Hour
)

// Transport is the Pulsar transport.
type Transport struct{}

// New returns the transport.
func New() *Transport { return &Transport{} }

// Describe says what an endpoint can do at most.
func (t *Transport) Describe() pluginapi.Spec {
	spec := pluginapi.Spec{
		Name:         Name,
		Version:      version,
		Settings:     pluginapi.SchemaOf[settings.Settings](),
		Subscription: pluginapi.SchemaOf[settings.SubscribeOptions](),
		Publish:      pluginapi.SchemaOf[settings.PublishOptions](),
		Publishing:   publishing(MaxMessage + message.Room),
		Seeks:        true,
		LinkStates:   true,
	}
	for _, kind := range []string{settings.TypeKeyShared, settings.TypeFailover} { // those of the other types lie within
		for _, timeout := range []time.Duration{0, maxAckTimeout} {
			spec.Ceilings = append(spec.Ceilings, pluginapi.HeldCapabilities(source(kind, timeout)))
		}
	}
	return spec
}

// source is what the broker and an ack timeout make of the deliveries of a
// subscription's type (reference 2.6). Delays are the plugin's own, see
// [pluginapi.Held].
func source(kind string, timeout time.Duration) core.Capabilities {
	c := core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueNow, MaxHold: timeout,
		Unsettled: core.UnsettledOnDisconnect, Durable: true, Order: core.OrderPerScope,
	}
	if counts(kind) {
		c.Counts, c.Recounts = core.CountNative, true
	} else {
		c.Rewinds = true
	}
	if kind == settings.TypeShared {
		c.Order = core.OrderNone
	}
	if timeout > 0 {
		c.Unsettled = core.UnsettledOnTimeout
	}
	return c
}

// counts reports whether the broker counts deliveries of a subscription's type.
func counts(kind string) bool { return kind == settings.TypeShared || kind == settings.TypeKeyShared }

// publishing is what a destination can do with messages of a size.
func publishing(size int64) core.Publishing {
	return core.Publishing{
		Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxDelay: MaxDelay,
		Headers: core.HeadersNativeText, MaxBytes: size - message.Room, MaxHeaders: MaxHeaders,
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
		return nil, &core.Fault{Code: core.FaultInvalid, Message: "configure pulsar", Diagnostics: wrong}
	}
	return e, nil
}
