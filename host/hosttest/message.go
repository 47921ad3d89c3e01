// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/pluginapi"
)

// Message is a message on the broker: one that a test delivers, or one that the
// service published.
type Message struct {
	Payload []byte
	Headers core.Headers
	// Name is the name that it is delivered under, where that is not the
	// subscription's own; of a published message where it went to.
	Name string
	// Scope is its partition or session. The default is the header partition-key.
	Scope string
	// Profile says which of several capability sets of its source it is delivered
	// under, by index.
	Profile int
	// Undecodable makes the transport say that it could not be read.
	Undecodable error

	// What follows is set by the broker alone.

	ID          uint64            // rising over all messages of the broker
	Endpoint    string            // that published it
	Purpose     pluginapi.Purpose // the service's own, a retry, a dead letter, or a reply
	DedupID     string
	Delay       time.Duration // that the broker was asked to deliver it after
	Options     []byte        // of its transport, as JSON
	PublishedAt time.Time
}

// Text returns a message with this payload.
func Text(payload string) Message { return Message{Payload: []byte(payload)} }

// JSON returns a message with v as JSON. It panics where v has no form in JSON.
func JSON(v any) Message {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hosttest: message of %T: %v", v, err))
	}
	return Message{Payload: b}
}

// With returns the message with one header more.
func (m Message) With(header, value string) Message {
	m.Headers = append(slices.Clip(m.Headers), core.Header{Name: header, Value: []byte(value)})
	return m
}

// Header returns the last header of that name, whatever its case, "" without.
func (m Message) Header(name string) string {
	v, _ := m.Headers.Get(name)
	return string(v)
}

// Text returns the payload.
func (m Message) Text() string { return string(m.Payload) }

// String returns the start of the payload.
func (m Message) String() string { return excerpt(m.Payload) }

// Deliver puts messages into the queue of a subscription, in order, and returns
// their ids. They are delivered as soon as a host reads it.
func (b *Broker) Deliver(subscription string, ms ...Message) []uint64 {
	in := make([]memory.Message, len(ms))
	for i, m := range ms {
		in[i] = memory.Message{
			Payload: slices.Clone(m.Payload), Headers: m.Headers, As: m.Name, Scope: m.Scope, Profile: uint32(m.Profile),
		}
		if m.Undecodable != nil {
			in[i].Undecodable = &core.Fault{Code: core.FaultInvalid, Message: m.Undecodable.Error()}
		}
	}
	return b.queues.Publish(subscription, in...)
}

// Published returns what the service has published to a name so far, in order:
// its own messages, replies, copies and dead letters.
func (b *Broker) Published(name string) []Message {
	return published(b.queues.Published(name))
}

func published(in []memory.Message) []Message {
	var ms []Message
	for _, m := range in {
		if m.By != "" {
			ms = append(ms, fromMemory(m))
		}
	}
	return ms
}

func fromMemory(m memory.Message) Message {
	out := Message{
		Payload: m.Payload, Headers: m.Headers, Name: m.Queue, Scope: m.Scope, Profile: int(m.Profile),
		ID: m.ID, Endpoint: m.By, Purpose: pluginapi.Purpose(m.Purpose), DedupID: m.DedupID, Delay: m.DeliverAfter,
		Options: m.Options, PublishedAt: m.PublishedAt,
	}
	if m.As != "" {
		out.Name = m.As
	}
	if m.Twin != 0 {
		out.ID = m.Twin
	}
	if m.Undecodable != nil {
		out.Undecodable = m.Undecodable
	}
	return out
}

// Respond answers the requests that the service sends to a name with what f
// returns; only its Payload and Headers count. Without it a request goes to the
// subscriptions that read the name, with a header reply-to, and what is published
// to that first is its answer, as host.HandleReply does.
//
// f runs on a goroutine of its own and may take its time: in a synctest bubble
// the end of a service waits for it, no longer than the limit of waits.
func (b *Broker) Respond(name string, f func(Message) Message) {
	b.queues.Respond(name, func(m memory.Message) memory.Message {
		answer := f(fromMemory(m))
		return memory.Message{Queue: name, Payload: answer.Payload, Headers: answer.Headers}
	})
}
