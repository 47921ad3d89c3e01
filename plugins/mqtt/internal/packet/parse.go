// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"unicode/utf8"
)

// The flags of a PUBLISH beside its QoS (3.3.1).
const (
	flagRetain = 1 << 0
	flagDup    = 1 << 3
)

// ParsePublish reads a PUBLISH and checks it: QoS, packet identifier, topic, and
// the structure of the property block, where each property is known and stands
// once where it must. The error is a *ProtocolError. What the strings of
// properties hold is not looked at: a message whose headers cannot be read is
// told as such, and to end the connection for it would bring it back at once.
func ParsePublish(p *Packet, out *Publish) error {
	*out = Publish{QoS: p.Flags >> 1 & 3, Dup: p.Flags&flagDup != 0, Retain: p.Flags&flagRetain != 0}
	if out.QoS == 3 {
		return malformed(TypePublish, "QoS 3") // [MQTT-3.3.1-4]
	}
	if out.QoS == 0 && out.Dup {
		return malformed(TypePublish, "DUP at QoS 0") // [MQTT-3.3.1-2]
	}
	topic, rest, ok := cutString(p.Body)
	if !ok {
		return malformed(TypePublish, "cut off within the topic")
	}
	if err := checkTopic(topic); err != nil {
		return err
	}
	out.Topic = topic
	if out.QoS > 0 {
		if len(rest) < 2 {
			return malformed(TypePublish, "cut off within the packet identifier")
		}
		if out.ID = binary.BigEndian.Uint16(rest); out.ID == 0 {
			return malformed(TypePublish, "packet identifier 0") // [MQTT-2.2.1-3]
		}
		rest = rest[2:]
	}
	if out.Properties, out.Payload, ok = cutProperties(rest); !ok {
		return malformed(TypePublish, "properties longer than the packet, or of no length")
	}
	return out.check()
}

// checkTopic checks a topic name (4.7). Without a topic alias, which we do not
// allow the server, there must be one.
func checkTopic(topic []byte) error {
	if len(topic) == 0 {
		return violation(TypePublish, "no topic")
	}
	ascii := true
	for _, c := range topic {
		switch {
		case c == 0:
			return malformed(TypePublish, "a topic with a null character: %.100q", topic) // [MQTT-1.5.4-2]
		case c == '+', c == '#':
			return malformed(TypePublish, "a topic with a wildcard: %.100q", topic) // [MQTT-3.3.2-2]
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if !ascii && !utf8.Valid(topic) {
		return malformed(TypePublish, "a topic that is not UTF-8: %.100q", topic) // [MQTT-3.3.2-1]
	}
	return nil
}

// maxIdentifiers is how many subscription identifiers a PUBLISH may carry: there
// is none for which no subscription of ours stands.
const maxIdentifiers = 1 << 16

// check looks at all properties.
func (p *Publish) check() error {
	for rest := p.Properties; len(rest) > 0; {
		id := rest[0]
		if id == PropUser {
			n := userSize(rest)
			if n == 0 {
				return malformed(TypePublish, "a user property that is cut off")
			}
			p.users++
			rest = rest[n:]
			continue
		}
		var f Property
		if f, rest = cutProperty(rest); f.ID == 0 {
			return malformed(TypePublish, "property 0x%02X is unknown or cut off", id)
		}
		switch f.ID {
		case PropIdentifier:
			if f.Number == 0 {
				return violation(TypePublish, "subscription identifier 0")
			}
			if p.identifiers == 0 {
				p.identifier = f.Number
			}
			if p.identifiers++; p.identifiers > maxIdentifiers {
				return violation(TypePublish, "more than %d subscription identifiers", maxIdentifiers)
			}
			continue
		case PropPayloadFormat:
			if f.Number > 1 {
				return violation(TypePublish, "payload format indicator %d", f.Number)
			}
		case PropExpiry:
			p.expiry, p.expires = f.Number, true
		case PropTopicAlias: // [MQTT-3.1.2-26]
			return &ProtocolError{Code: CodeTopicAlias, Type: TypePublish, Reason: "a topic alias, where none is allowed"}
		case PropContentType, PropResponseTopic, PropCorrelationData:
		default:
			return violation(TypePublish, "property 0x%02X, which it does not have", f.ID)
		}
		if p.seen&(1<<f.ID) != 0 {
			return violation(TypePublish, "property 0x%02X twice", f.ID)
		}
		p.seen |= 1 << f.ID
	}
	return nil
}
