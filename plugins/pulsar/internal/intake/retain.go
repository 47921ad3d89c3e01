// SPDX-License-Identifier: Apache-2.0

package intake

import "github.com/longshore-go/longshore/plugins/pulsar/internal/wire"

// ownFrame is how large a message is that may as well keep its frame: smaller ones
// share frames' memory with many others.
const ownFrame = 16 << 10

// retain keeps a message to be handed out again. in.mu is held.
func (e *entry) retain(msg *wire.Message) {
	e.msg = new(wire.Message)
	*e.msg = *msg
	e.retained = true
	e.lane.in.retained += int64(e.size)
}

// part takes a message that is to be kept for long out of the memory that it shares
// with others, so that no more is kept than counts as retained.
func (e *entry) part() {
	if e.msg == nil || e.size >= ownFrame && e.batch == nil {
		return
	}
	m := *e.msg
	n := len(m.Payload) + len(m.Key) + len(m.OrderingKey)
	for _, p := range m.Properties {
		n += len(p.Name) + len(p.Value)
	}
	own := make([]byte, 0, n)
	copied := func(b []byte) []byte {
		at := len(own)
		own = append(own, b...)
		return own[at:]
	}
	m.Payload, m.Key, m.OrderingKey = copied(m.Payload), copied(m.Key), copied(m.OrderingKey)
	properties := make([]wire.Property, len(m.Properties))
	for i, p := range m.Properties {
		properties[i] = wire.Property{Name: copied(p.Name), Value: copied(p.Value)}
	}
	m.Properties = properties
	*e.msg = m
}
