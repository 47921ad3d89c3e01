// SPDX-License-Identifier: Apache-2.0

package message

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
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
// absent; the count of copies is left off, for the server counts (S-PUL-08).
func DeadLetter(m *core.Message, o Options, carried []byte) *pulsar.ProducerMessage {
	c, ours := parseCarry(carried)
	if !ours {
		return For(m, o)
	}
	out := For(m, Options{})
	if c.key != "" {
		out.Key = c.key
	}
	if c.orderingKey != "" {
		out.OrderingKey = c.orderingKey
	}
	if c.eventTime > 0 {
		out.EventTime = time.UnixMilli(c.eventTime)
	}
	o.apply(out)
	for name := range out.Properties {
		if is(name, core.CountHeader) || name == emptyMark {
			delete(out.Properties, name)
		}
	}
	if out.Properties == nil {
		out.Properties = make(map[string]string, deadLetterProperties)
	}
	for name, value := range map[string]string{RealTopic: c.as, OriginMessageID: c.id.String()} {
		if _, ok := out.Properties[name]; !ok {
			out.Properties[name] = value
		}
	}
	return out
}
