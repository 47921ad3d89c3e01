// SPDX-License-Identifier: Apache-2.0

// Package carry is what travels with a delivery and comes back on the copies and
// dead letters that stem from it.
package carry

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"time"
)

// version is the first byte of what Append writes.
const version = 1

// Instance tells the connections of one endpoint in one process from all others:
// what another one has written means nothing here.
type Instance [8]byte

// NewInstance returns one that nobody else has.
func NewInstance() Instance {
	var i Instance
	_, _ = rand.Read(i[:]) // never fails
	return i
}

// Carry says where a delivery came from.
type Carry struct {
	Link     uint64 // the connection's number, from 1
	QoS      byte   // of the packet: 0, 1 or 2
	Deadline int64  // when the message expires, in milliseconds since 1970; 0 = never
}

// Expiry returns what is left of the message's life at a time, in whole seconds,
// rounded up. ok is false where it does not expire; 0 seconds mean that it has
// (OASIS MQTT 5.0, 3.3.2.3.3).
func (c Carry) Expiry(now time.Time) (seconds uint32, ok bool) {
	if c.Deadline == 0 {
		return 0, false
	}
	left := c.Deadline - now.UnixMilli()
	if left <= 0 {
		return 0, true
	}
	return uint32(min((left+999)/1000, math.MaxUint32)), true
}

// head are the bytes that every carry has: version, instance and QoS.
const head = 1 + len(Instance{}) + 1

// Size is the most that Append adds.
const Size = head + 2*binary.MaxVarintLen64

// Append appends c as i has it, at most Size bytes.
func Append(dst []byte, i Instance, c Carry) []byte {
	dst = append(dst, version)
	dst = append(dst, i[:]...)
	dst = append(dst, c.QoS)
	dst = binary.AppendUvarint(dst, c.Link)
	return binary.AppendUvarint(dst, uint64(max(c.Deadline, 0)))
}

// Parse reads what Append has written for i. Anything else is none, as is nil: the
// delivery came from elsewhere, or from a former process.
func Parse(b []byte, i Instance) (c Carry, ok bool) {
	if len(b) < head || b[0] != version || Instance(b[1:head-1]) != i || b[head-1] > 2 {
		return Carry{}, false
	}
	c.QoS = b[head-1]
	rest := b[head:]
	link, n := binary.Uvarint(rest)
	if n <= 0 {
		return Carry{}, false
	}
	deadline, m := binary.Uvarint(rest[n:])
	if m <= 0 || n+m != len(rest) || deadline > math.MaxInt64 {
		return Carry{}, false
	}
	c.Link, c.Deadline = link, int64(deadline)
	return c, true
}
