// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The properties that say where a dead letter was read, as Pulsar's clients name
// them.
const (
	RealTopic       = "REAL_TOPIC"        // the topic as subscribed, in full for patterns
	OriginMessageID = "ORIGIN_MESSAGE_ID" // topic.ID of the message
)

// deadLetterProperties is how many they are.
const deadLetterProperties = 2

// DeadLetter makes the message that is published for a dead letter or a copy with a
// carry, which is none of ours where another endpoint delivered the message: then it
// is For. A dead letter of ours keeps key, ordering key and event time, whatever
// became of their headers; RealTopic and OriginMessageID are added where they are
// absent; the count of copies is left off, for the server counts (S-PUL-08). Values
// lie in the memory of m and of the carry.
func DeadLetter(m *core.Message, o Options, carried []byte) wire.Outgoing {
	c, ours := parseCarry(carried)
	if !ours {
		return For(m, o)
	}
	out := of(m, deadLetterProperties)
	if len(c.key) > 0 {
		out.Key = string(c.key)
	}
	if len(c.orderingKey) > 0 {
		out.OrderingKey = string(c.orderingKey)
	}
	if c.eventTime > 0 {
		out.EventTime = c.eventTime
	}
	o.apply(&out)
	out.Properties = slices.DeleteFunc(out.Properties, func(p wire.OutgoingProperty) bool {
		return is(p.Name, core.CountHeader) || p.Name == emptyMark
	})
	add := func(name string, value []byte) {
		if !slices.ContainsFunc(out.Properties, func(p wire.OutgoingProperty) bool { return p.Name == name }) {
			out.Properties = append(out.Properties, wire.OutgoingProperty{Name: name, Value: value})
		}
	}
	add(RealTopic, c.as)
	add(OriginMessageID, c.id.AppendText(nil))
	return out
}
