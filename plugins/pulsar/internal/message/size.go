// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Room is what of the largest message is kept for all but payload and headers, in
// bytes: names and numbers of the producer, and the lengths of all parts. The
// broker counts them, with keys and properties, against the broker's limit.
const Room = 512

// propertySize is what a property takes beside name and value.
const propertySize = 16

// CheckSize says why a message is larger than a limit in bytes (S-PUL-31), nil = it
// is not. The limit is the broker's, of all parts of a message together. The fault
// names both numbers.
func CheckSize(name string, m *wire.Outgoing, limit int) *core.Fault {
	const fix = "send less, or raise max_message_size here and maxMessageSize of the broker"
	head := len(m.Key) + len(m.OrderingKey)
	for i := range m.Properties {
		head += len(m.Properties[i].Name) + len(m.Properties[i].Value) + propertySize
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
