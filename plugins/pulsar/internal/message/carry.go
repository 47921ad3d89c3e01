// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"math"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// carry is what a dead letter needs of the delivery that it stems from.
type carry struct {
	own
	as string // the topic as subscribed
	id topic.ID
}

// The layout of a carry: mark, version, id, event time, and three texts with their
// lengths. Bytes that are not of it are none of ours: a dead letter of another
// endpoint has that endpoint's carry.
const (
	carryMark    = 'P'
	carryVersion = 1
)

// maxCarried is the most bytes of a key and of an ordering key in a carry, which has
// a limit beside its message. A longer one is a header alone.
const maxCarried = 64 << 10

func (c *carry) size() int {
	return 2 + topic.MaxPosition + 4*binary.MaxVarintLen64 + len(c.as) + len(c.key) + len(c.orderingKey)
}

func (c *carry) append(dst []byte) []byte {
	dst = topic.AppendID(append(dst, carryMark, carryVersion), c.id)
	dst = binary.AppendUvarint(dst, uint64(c.eventTime))
	for _, text := range [...]string{c.as, short(c.key), short(c.orderingKey)} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return dst
}

func short(key string) string {
	if len(key) > maxCarried {
		return ""
	}
	return key
}

// parseCarry reads a carry, and reports whether it is one of ours.
func parseCarry(b []byte) (c carry, ok bool) {
	if len(b) < 2 || b[0] != carryMark || b[1] != carryVersion {
		return carry{}, false
	}
	id, b, ok := topic.CutID(b[2:])
	if !ok {
		return carry{}, false
	}
	at, n := binary.Uvarint(b)
	if n <= 0 || at > math.MaxInt64 {
		return carry{}, false
	}
	b = b[n:]
	c.id, c.eventTime = id, int64(at)
	for _, text := range []*string{&c.as, &c.key, &c.orderingKey} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return carry{}, false
		}
		*text = string(b[n : n+int(size)])
		b = b[n+int(size):]
	}
	return c, len(b) == 0
}
