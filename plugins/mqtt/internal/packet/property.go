// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// The properties (2.2.2.2) that a PUBLISH has.
const (
	PropPayloadFormat   byte = 0x01
	PropExpiry          byte = 0x02
	PropContentType     byte = 0x03
	PropResponseTopic   byte = 0x08
	PropCorrelationData byte = 0x09
	PropIdentifier      byte = 0x0B
	PropTopicAlias      byte = 0x23
	PropUser            byte = 0x26
)

// Others that are looked at here.
const (
	propSessionExpiry     byte = 0x11
	propAssignedClientID  byte = 0x12
	propServerKeepAlive   byte = 0x13
	propAuthMethod        byte = 0x15
	propAuthData          byte = 0x16
	propRequestProblem    byte = 0x17
	propWillDelay         byte = 0x18
	propRequestResponse   byte = 0x19
	propResponseInfo      byte = 0x1A
	propServerReference   byte = 0x1C
	propReasonString      byte = 0x1F
	propReceiveMaximum    byte = 0x21
	propTopicAliasMaximum byte = 0x22
	propMaximumQoS        byte = 0x24
	propRetainAvailable   byte = 0x25
	propMaximumPacket     byte = 0x27
	propWildcards         byte = 0x28
	propIdentifiers       byte = 0x29
	propShared            byte = 0x2A
)

// Property is one property of a block. ID 0 is none.
type Property struct {
	ID     byte
	Number uint32 // of one that is a number
	Name   []byte // of a user property
	Value  []byte // of one that is a string or binary data, and of a user property
}

// kind is how a property is written.
type kind byte

const (
	kindNone kind = iota
	kindByte
	kindTwo
	kindFour
	kindVBI
	kindString
	kindBinary
	kindPair
)

// kinds are the kinds of all properties of the standard.
var kinds = [...]kind{
	PropPayloadFormat: kindByte, PropExpiry: kindFour, PropContentType: kindString, PropResponseTopic: kindString,
	PropCorrelationData: kindBinary, PropIdentifier: kindVBI, propSessionExpiry: kindFour, propAssignedClientID: kindString,
	propServerKeepAlive: kindTwo, propAuthMethod: kindString, propAuthData: kindBinary, propRequestProblem: kindByte,
	propWillDelay: kindFour, propRequestResponse: kindByte, propResponseInfo: kindString, propServerReference: kindString,
	propReasonString: kindString, propReceiveMaximum: kindTwo, propTopicAliasMaximum: kindTwo, PropTopicAlias: kindTwo,
	propMaximumQoS: kindByte, propRetainAvailable: kindByte, PropUser: kindPair, propMaximumPacket: kindFour,
	propWildcards: kindByte, propIdentifiers: kindByte, propShared: kindByte,
}

// CutProperty takes the first property off a block that ParsePublish has taken.
// It reports false at its end.
func CutProperty(block []byte) (p Property, rest []byte, ok bool) {
	p, rest = cutProperty(block)
	return p, rest, p.ID != 0
}

// CutUser takes a user property off a block that ParsePublish has taken. It reports
// false where the first property is another. It is what most properties are read
// with: CutProperty takes twice the time.
func CutUser(block []byte) (name, value, rest []byte, ok bool) {
	if len(block) == 0 || block[0] != PropUser {
		return nil, nil, nil, false
	}
	from := userHead + int(binary.BigEndian.Uint16(block[1:]))
	end := userSize(block)
	return block[userHead:from:from], block[from+2 : end : end], block[end:], true
}

// userHead is what stands before the name of a user property.
const userHead = 3

// userSize is how many bytes the user property at the beginning of b takes, 0 = it
// is cut off.
func userSize(b []byte) int {
	if len(b) < userHead {
		return 0
	}
	at := userHead + int(binary.BigEndian.Uint16(b[1:]))
	if len(b) < at+2 {
		return 0
	}
	if at += 2 + int(binary.BigEndian.Uint16(b[at:])); len(b) < at {
		return 0
	}
	return at
}

// cutProperty takes a property off b. Its ID is 0 where none stands there whole,
// or where the standard has none of that number.
func cutProperty(b []byte) (Property, []byte) {
	if len(b) == 0 || int(b[0]) >= len(kinds) {
		return Property{}, nil
	}
	p, rest, ok := Property{ID: b[0]}, b[1:], false
	switch kinds[p.ID] {
	case kindPair:
		if p.Name, rest, ok = cutString(rest); ok {
			p.Value, rest, ok = cutString(rest)
		}
	case kindString, kindBinary:
		p.Value, rest, ok = cutString(rest)
	case kindByte:
		if ok = len(rest) >= 1; ok {
			p.Number, rest = uint32(rest[0]), rest[1:]
		}
	case kindTwo:
		if ok = len(rest) >= 2; ok {
			p.Number, rest = uint32(binary.BigEndian.Uint16(rest)), rest[2:]
		}
	case kindFour:
		if ok = len(rest) >= 4; ok {
			p.Number, rest = binary.BigEndian.Uint32(rest), rest[4:]
		}
	case kindVBI:
		var n int
		if p.Number, n = vbi(rest); n > 0 {
			rest, ok = rest[n:], true
		}
	}
	if !ok {
		return Property{}, nil
	}
	return p, rest
}
