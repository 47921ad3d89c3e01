// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// Message is one delivery as its handler sees it. It and the bytes that its
// methods return are valid until the handler returns; what is needed longer must
// be cloned. Names and other strings may be kept. A Message that a test makes by
// itself has a Value and nothing else.
type Message[T any] struct {
	Value T // the decoded payload

	delivery *settlement.Delivery
	replaced []byte
	forwards bool // a new payload is there
}

// Name returns the topic, key or queue that the message was read from.
func (m *Message[T]) Name() string {
	if m.delivery == nil {
		return ""
	}
	return m.delivery.Message.Name
}

// Header returns the value of a header as text, "" where it is not there. The
// name's case does not matter; of several values the last one counts.
func (m *Message[T]) Header(name string) string {
	hs := m.Headers()
	for i := len(hs) - 1; i >= 0; i-- {
		if strings.EqualFold(hs[i].Name, name) {
			return string(hs[i].Value)
		}
	}
	return ""
}

// Headers returns all headers in the order received, repeats included.
func (m *Message[T]) Headers() core.Headers {
	if m.delivery == nil {
		return nil
	}
	return m.delivery.Message.Headers
}

// Payload returns the bytes as received.
func (m *Message[T]) Payload() []byte {
	if m.delivery == nil {
		return nil
	}
	return m.delivery.Message.Payload
}

// Attempt counts the deliveries of this message: 1 is the first, 0 is unknown.
func (m *Message[T]) Attempt() uint64 {
	if m.delivery == nil {
		return 0
	}
	return m.delivery.Number
}

// Last reports whether this is the last attempt that [MaxAttempts] allows.
func (m *Message[T]) Last() bool { return m.delivery != nil && m.delivery.Last }

// Replace sets the payload that the rule [Forward] publishes when the handler
// returns nil. Retries and dead letters keep the payload as received. payload
// must not change until its publish is confirmed, so it must not be one that
// the handler uses again.
func (m *Message[T]) Replace(payload []byte) { m.replaced, m.forwards = payload, true }

// Clone returns a copy that is valid for as long as it is kept. A Value of type
// []byte or core.Message is copied; any other is decoded already and is shared.
func (m *Message[T]) Clone() *Message[T] {
	c := &Message[T]{Value: m.Value}
	if m.delivery != nil {
		d := *m.delivery
		d.Message = cloneMessage(d.Message)
		d.Identity = cloneBytes(d.Identity)
		d.Position = cloneBytes(d.Position)
		c.delivery = &d
	}
	switch v := any(m.Value).(type) {
	case []byte:
		c.Value = any(cloneBytes(v)).(T)
	case core.Message:
		c.Value = any(cloneMessage(v)).(T)
	}
	return c
}

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
