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
	as []byte // the topic as subscribed
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

// carrySize is how much a carry takes at most.
func carrySize(o *own, as string) int {
	return 2 + topic.MaxPosition + 4*binary.MaxVarintLen64 + len(as) + len(short(o.key)) + len(short(o.orderingKey))
}

// appendCarry appends the carry of a delivery.
func appendCarry(dst []byte, o *own, as string, id topic.ID) []byte {
	dst = topic.AppendID(append(dst, carryMark, carryVersion), id)
	dst = binary.AppendUvarint(dst, uint64(o.eventTime))
	dst = append(binary.AppendUvarint(dst, uint64(len(as))), as...)
	for _, key := range [...][]byte{short(o.key), short(o.orderingKey)} {
		dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	}
	return dst
}

func short(key []byte) []byte {
	if len(key) > maxCarried {
		return nil
	}
	return key
}

// parseCarry reads a carry, and reports whether it is one of ours. Its texts lie in b.
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
	for _, text := range []*[]byte{&c.as, &c.key, &c.orderingKey} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return carry{}, false
		}
		*text = b[n : n+int(size) : n+int(size)]
		b = b[n+int(size):]
	}
	return c, len(b) == 0
}
