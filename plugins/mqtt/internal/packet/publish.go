// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// Publish is a PUBLISH (3.3). What ParsePublish put there lies in the reader's
// memory.
type Publish struct {
	QoS        byte
	Dup        bool
	Retain     bool
	ID         uint16 // 0 at QoS 0
	Topic      []byte
	Properties []byte // the block, without its length
	Payload    []byte

	expiry      uint32
	expires     bool
	identifiers int
	identifier  uint32 // the first
	users       int
	seen        uint64 // properties, a bit for each
}

// Has reports whether there is a property, which is none that may stand there
// more than once.
func (p *Publish) Has(property byte) bool { return p.seen&(1<<property) != 0 }

// Users returns how many user properties there are.
func (p *Publish) Users() int { return p.users }

// Identifiers appends the subscription identifiers that the packet carries, in
// their order.
func (p *Publish) Identifiers(dst []uint32) []uint32 {
	if p.identifiers <= 1 {
		if p.identifiers == 1 {
			dst = append(dst, p.identifier)
		}
		return dst
	}
	for rest := p.Properties; len(rest) > 0; {
		var f Property
		if f, rest = cutProperty(rest); f.ID == PropIdentifier {
			dst = append(dst, f.Number)
		} else if f.ID == 0 {
			break
		}
	}
	return dst
}

// Expiry is the Message Expiry Interval, and whether there is one.
func (p *Publish) Expiry() (seconds uint32, ok bool) { return p.expiry, p.expires }

// Head is what a PUBLISH is written with beside properties and payload.
type Head struct {
	QoS    byte
	Dup    bool
	Retain bool
	ID     uint16 // left out at QoS 0
	Topic  string // of at most MaxString bytes
}

// PublishSize is how many bytes a PUBLISH takes with so many bytes of properties
// and payload. More than MaxSize cannot be written.
func PublishSize(h *Head, properties, payload int) int {
	n := h.remaining(properties, payload)
	return 1 + vbiSize(n) + n
}

func (h *Head) remaining(properties, payload int) int {
	n := 2 + len(h.Topic) + vbiSize(properties) + properties + payload
	if h.QoS > 0 {
		n += 2
	}
	return n
}

// AppendPublishHead appends a PUBLISH up to its properties, which the caller
// appends, and after them the payload.
func AppendPublishHead(dst []byte, h *Head, properties, payload int) []byte {
	flags := h.QoS << 1
	if h.Dup {
		flags |= flagDup
	}
	if h.Retain {
		flags |= flagRetain
	}
	dst = append(dst, TypePublish<<4|flags)
	dst = appendVBI(dst, h.remaining(properties, payload))
	dst = AppendString(dst, h.Topic)
	if h.QoS > 0 {
		dst = binary.BigEndian.AppendUint16(dst, h.ID)
	}
	return appendVBI(dst, properties)
}
