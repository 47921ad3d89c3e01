// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"strings"
)

// Ack is a PUBACK, PUBREC, PUBREL or PUBCOMP (3.4 to 3.7).
type Ack struct {
	ID     uint16
	Code   byte   // CodeError and above: refused
	Reason string // the server's own words, "" = none
}

// ParseAck reads a PUBACK, PUBREC, PUBREL or PUBCOMP. The error is a
// *ProtocolError. Reason codes that the standard does not have are taken: whether
// a code tells of a failure shows in its first bit.
func ParseAck(p *Packet, out *Ack) error {
	*out = Ack{}
	if len(p.Body) < 2 {
		return malformed(p.Type, "cut off within the packet identifier")
	}
	if out.ID = binary.BigEndian.Uint16(p.Body); out.ID == 0 {
		return malformed(p.Type, "packet identifier 0")
	}
	if len(p.Body) == 2 { // then the code is 0x00 (3.4.2.1)
		return nil
	}
	out.Code = p.Body[2]
	if len(p.Body) == 3 { // then there are no properties (3.4.2.2.1)
		return nil
	}
	block, rest, ok := cutProperties(p.Body[3:])
	if !ok || len(rest) > 0 {
		return malformed(p.Type, "properties that are not as long as the packet")
	}
	reason, err := checkProperties(p.Type, block)
	out.Reason = reason
	return err
}

// maxText is how many bytes are kept of what a server says.
const maxText = 256

// text makes what a server says one short line of valid text. It is for people, so
// that nothing depends on it.
func text(b []byte) string {
	b = b[:min(len(b), maxText)]
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(b), "\uFFFD"), isControl), " ")
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7F && r < 0xA0 }

// AppendAck appends a PUBACK, PUBREC, PUBREL or PUBCOMP, in the shortest form.
func AppendAck(dst []byte, typ byte, id uint16, code byte) []byte {
	head := typ << 4
	if typ == TypePubrel {
		head |= flagsRequired
	}
	if code == CodeSuccess {
		return append(dst, head, 2, byte(id>>8), byte(id))
	}
	return append(dst, head, 3, byte(id>>8), byte(id), code)
}

// AppendPing appends a PINGREQ.
func AppendPing(dst []byte) []byte { return append(dst, TypePingreq<<4, 0) }
