// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// HeadRoom is how many bytes properties and keys may take beside a payload of the largest
// size. The server reads frames of its limit and 10 KiB, of which names, numbers and
// the lengths of all parts take the rest.
const HeadRoom = 8 << 10

// propertySize is what a property takes beside name and value.
const propertySize = 16

// CheckSize says why a message is larger than a limit in bytes (S-PUL-31), nil = it
// is not. The limit is the payload's, as the server's is; properties and keys have
// 8 KiB beside it, and what a smaller payload leaves. The fault names both numbers.
func CheckSize(name string, m *pulsar.ProducerMessage, limit int) *core.Fault {
	const fix = "send less, or raise max_message_size here and on the server"
	if n := len(m.Payload); n > limit {
		return tooLarge(fix, "%s: the payload has %d bytes, the limit is %d", fault.PublishTo(name), n, limit)
	}
	head := len(m.Key) + len(m.OrderingKey)
	for k, v := range m.Properties {
		head += len(k) + len(v) + propertySize
	}
	if n := len(m.Payload) + head; n > limit+HeadRoom {
		return tooLarge(fix, "%s: payload and headers have %d bytes, the limit is %d", fault.PublishTo(name), n, limit+HeadRoom)
	}
	return nil
}

func tooLarge(fix, format string, args ...any) *core.Fault {
	f := fault.Refusal(core.FaultTooLarge, format, args...)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}
