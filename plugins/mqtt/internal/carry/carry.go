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

// Instance tells one connection of one endpoint in one process from all others,
// over all the times that it is made anew.
type Instance [8]byte

// NewInstance returns one that nobody else has.
func NewInstance() Instance {
	var i Instance
	_, _ = rand.Read(i[:]) // never fails
	return i
}

// Carry says where a delivery came from. What another process has written, or
// another connection, is told by the instance.
type Carry struct {
	Instance Instance
	Link     uint64 // the number, from 1, of the network connection that it came on
	ID       uint16 // of the packet, 0 at QoS 0
	QoS      byte   // of the packet: 0, 1 or 2
	Deadline int64  // when the message expires, in milliseconds since 1970; 0 = never
}

// Expiry returns what is left of the message's life at a time, in whole seconds,
// rounded up. ok is false where it does not expire; 0 seconds mean that it has
// (OASIS MQTT 5.0, 3.3.2.3.3).
func (c *Carry) Expiry(now time.Time) (seconds uint32, ok bool) {
	if c.Deadline == 0 {
		return 0, false
	}
	left := c.Deadline - now.UnixMilli()
	if left <= 0 {
		return 0, true
	}
	return uint32(min((left-1)/1000+1, math.MaxUint32)), true
}

// Where things stand in what Append writes; link and deadline follow.
const (
	atInstance = 1
	atQoS      = atInstance + len(Instance{})
	atID       = atQoS + 1
	atLink     = atID + 2
)

// Size is the most that Append adds.
const Size = atLink + 2*binary.MaxVarintLen64

// Append appends c, at most Size bytes.
func Append(dst []byte, c *Carry) []byte {
	dst = append(dst, version)
	dst = append(dst, c.Instance[:]...)
	dst = append(dst, c.QoS)
	dst = binary.BigEndian.AppendUint16(dst, c.ID)
	dst = binary.AppendUvarint(dst, c.Link)
	return binary.AppendUvarint(dst, uint64(max(c.Deadline, 0)))
}

// Parse reads what Append has written. Anything else is none, as is nothing: the
// delivery came from another transport.
func Parse(b []byte) (c Carry, ok bool) {
	if len(b) < atLink || b[0] != version || b[atQoS] > 2 {
		return Carry{}, false
	}
	c.Instance = Instance(b[atInstance:atQoS])
	c.QoS, c.ID = b[atQoS], binary.BigEndian.Uint16(b[atID:])
	rest := b[atLink:]
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
