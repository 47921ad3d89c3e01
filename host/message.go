// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// Message is one delivery as its handler sees it. It and the bytes that its
// methods return are valid until the handler returns; what is needed longer must
// be cloned. Names and other strings may be kept. A Message that a test makes by
// itself has a Value and nothing else.
type Message[T any] struct {
	Value T // the decoded payload

	e envelope
}

// Name returns the topic, key or queue that the message was read from.
func (m *Message[T]) Name() string { return m.e.name() }

// Header returns the value of a header as text, "" where it is not there. The
// name's case does not matter; of several values the last one counts.
func (m *Message[T]) Header(name string) string {
	v, _ := lookup(m.e.headers(), name)
	return v
}

// Headers returns all headers in the order received, repeats included.
func (m *Message[T]) Headers() core.Headers { return m.e.headers() }

// Payload returns the bytes as received.
func (m *Message[T]) Payload() []byte { return m.e.payload() }

// Attempt counts the deliveries of this message: 1 is the first, 0 is unknown.
func (m *Message[T]) Attempt() uint64 {
	if m.e.delivery == nil {
		return 0
	}
	return m.e.delivery.Number
}

// Last reports whether this is the last attempt that [MaxAttempts] allows.
func (m *Message[T]) Last() bool { return m.e.delivery != nil && m.e.delivery.Last }

// Endpoint returns the name of the subscription's endpoint.
func (m *Message[T]) Endpoint() string {
	if m.e.from == nil {
		return ""
	}
	return m.e.from.endpoint.name
}

// Subscription returns the name of the subscription that the message came by.
func (m *Message[T]) Subscription() string {
	if m.e.from == nil {
		return ""
	}
	return m.e.from.name
}

// Published returns when the message was published, as its transport knows it;
// the zero time where it does not.
func (m *Message[T]) Published() time.Time {
	if m.e.delivery == nil {
		return time.Time{}
	}
	return m.e.delivery.Published
}

// Position returns where the message stands in its source, for [AtPosition]; nil
// where the transport does not say. It is the transport's own and is valid as the
// payload is.
func (m *Message[T]) Position() []byte { return m.e.position() }

// Snoozes counts how often the handler has put this delivery off without being
// counted.
func (m *Message[T]) Snoozes() int {
	if m.e.delivery == nil {
		return 0
	}
	return m.e.delivery.Snoozes
}

// Replace sets the payload that the rule [Forward] publishes when the handler
// returns nil. Retries and dead letters keep the payload as received. payload
// must not change until its publish is confirmed, so it must not be one that
// the handler uses again.
func (m *Message[T]) Replace(payload []byte) { m.e.replaced, m.e.forwards = payload, true }

// OnNotAcked has undo called where the handler does not end in an ack: it, or
// middleware around it, fails after this call, or what is published with its nil
// ([Forward], [HandleReply]) is not confirmed, so that the delivery is retried
// after all. It is for what remembers finished work, as middleware that drops
// doubles does. undo gets the reason, runs once, on any goroutine, and must not
// block; what it throws is logged. OnNotAcked may be called until the handler
// returns.
func (m *Message[T]) OnNotAcked(undo func(error)) {
	if undo != nil {
		m.e.undo = append(m.e.undo, undo)
	}
}

// Clone returns a copy that is valid for as long as it is kept. A Value of type
// []byte or core.Message is copied; any other is decoded already and is shared.
func (m *Message[T]) Clone() *Message[T] {
	c := &Message[T]{Value: m.Value}
	c.e.self, c.e.from, c.e.cloned = c, m.e.from, true
	if m.e.delivery != nil {
		d := *m.e.delivery
		d.Message = cloneMessage(d.Message)
		d.Identity = cloneBytes(d.Identity)
		d.Position = cloneBytes(d.Position)
		d.Value = nil
		c.e.delivery = &d
	}
	switch v := any(m.Value).(type) {
	case []byte:
		c.Value = any(cloneBytes(v)).(T)
	case core.Message:
		c.Value = any(cloneMessage(v)).(T)
	}
	return c
}

func (m *Message[T]) envelope() *envelope { return &m.e }

// cloneMessage returns a copy of m that shares no bytes with it.
func cloneMessage(m core.Message) core.Message {
	c := core.Message{Name: m.Name, Payload: cloneBytes(m.Payload)}
	if m.Headers != nil {
		c.Headers = make(core.Headers, len(m.Headers))
		for i, h := range m.Headers {
			c.Headers[i] = core.Header{Name: h.Name, Value: cloneBytes(h.Value)}
		}
	}
	return c
}

// cloneBytes returns a copy of b; nil stays nil.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
