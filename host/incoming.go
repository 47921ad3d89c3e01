// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// Incoming is a delivery without the type of its value: what middleware, error
// matchers and tracers see. A [*Message] is one, and nothing outside this package
// can make another; a struct that embeds an Incoming stands for the one that it
// embeds. It is valid as long as the message is, until the handler returns.
type Incoming interface {
	Name() string                // the topic, key or queue that it was read from
	Header(name string) string   // the last value of a header, in any case; "" = it is not there
	Headers() core.Headers       // all headers in the order received
	Payload() []byte             // the bytes as received
	Attempt() uint64             // 1 = the first delivery, 0 = unknown
	Last() bool                  // the last attempt that MaxAttempts allows
	Endpoint() string            // the name of the subscription's endpoint
	Subscription() string        // the subscription's name
	Published() time.Time        // when it was published; zero = unknown
	Position() []byte            // where it stands, see Message.Position; nil = unknown
	Snoozes() int                // how often it was put off without being counted
	OnNotAcked(undo func(error)) // see Message.OnNotAcked

	envelope() *envelope
}

// envelope is what a message has beside its value.
type envelope struct {
	self     any // the *Message that it is part of
	delivery *settlement.Delivery
	from     *Subscription
	ctx      context.Context //nolint:containedctx // the handler's, for what it publishes without naming one

	replaced []byte
	forwards bool // a new payload is there
	reply    any  // what the handler of HandleReply returned
	replies  bool // there is one
	undo     []func(error)
	held     atomic.Pointer[held] // by PublishWith; nil = nothing
	cloned   bool                 // it is not the handler's
	index    int                  // in its batch
	passage  *passage             // through its middleware; nil = there is none
}

// envelopeOf returns the envelope of what a user has passed on, nil where there is
// none: of a nil, or what embeds one.
func envelopeOf(m Incoming) (e *envelope) {
	defer func() {
		if recover() != nil {
			e = nil
		}
	}()
	return m.envelope()
}

// done forgets the delivery, and what its handler has left. What is seldom used is
// seldom cleared.
func (e *envelope) done() {
	if e.forwards || e.replies || e.undo != nil {
		*e = envelope{self: e.self, from: e.from}
		return
	}
	e.delivery, e.ctx = nil, nil
}

// name returns what the delivery was read from.
func (e *envelope) name() string {
	if e.delivery == nil {
		return ""
	}
	return e.delivery.Message.Name
}

// headers returns all headers.
func (e *envelope) headers() core.Headers {
	if e.delivery == nil {
		return nil
	}
	return e.delivery.Message.Headers
}

// payload returns the bytes as received.
func (e *envelope) payload() []byte {
	if e.delivery == nil {
		return nil
	}
	return e.delivery.Message.Payload
}

// position returns where the delivery stands.
func (e *envelope) position() []byte {
	if e.delivery == nil {
		return nil
	}
	return e.delivery.Position
}

// undone tells those who want to know that a delivery is not acked after all.
func (e *envelope) undone(why error) { undone(e.from, e.undo, why) }

// undone is envelope.undone with the functions alone. What they throw is logged: it
// may be the engine's goroutine.
func undone(from *Subscription, undo []func(error), why error) {
	for _, f := range undo {
		done := make(chan struct{})
		go func() { // which it may end
			defer close(done)
			defer func() {
				if v := recover(); v != nil {
					e := thrown(v)
					from.endpoint.host.options.logger.Error("function of OnNotAcked panicked", "endpoint", from.endpoint.name,
						"subscription", from.name, "panic", e.Value, "stack", e.Stack)
				}
			}()
			f(why)
		}()
		<-done
	}
}

// undoUnless tells them where a delivery does not end in an ack.
func (e *envelope) undoUnless(said *settlement.Said) {
	if len(e.undo) > 0 && said.Outcome.Kind != core.OutcomeAck {
		e.undone(said.Err)
	}
}
