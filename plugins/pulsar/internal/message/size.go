// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// Room is what of the largest message is kept for all but payload and headers, in
// bytes: names and numbers of the producer, and the lengths of all parts. The client
// counts them, with keys and properties, against the broker's limit.
const Room = 512

// propertySize is what a property takes beside name and value.
const propertySize = 16

// CheckSize says why a message is larger than a limit in bytes (S-PUL-31), nil = it
// is not. The limit is the broker's, of all parts of a message together. The fault
// names both numbers.
func CheckSize(name string, m *pulsar.ProducerMessage, limit int) *core.Fault {
	const fix = "send less, or raise max_message_size here and maxMessageSize of the broker"
	head := len(m.Key) + len(m.OrderingKey)
	for k, v := range m.Properties {
		head += len(k) + len(v) + propertySize
	}
	if n := len(m.Payload) + head; n > limit-Room {
		return tooLarge(fix, "%s: payload and headers have %d bytes, the limit is %d: %d less %d for what goes with them",
			fault.PublishTo(name), n, limit-Room, limit, Room)
	}
	return nil
}

func tooLarge(fix, format string, args ...any) *core.Fault {
	f := fault.Refusal(core.FaultTooLarge, format, args...)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}
