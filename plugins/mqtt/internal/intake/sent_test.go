// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
)

// number is the identifier of a filter in tests.
func number(wire string) uint32 {
	n := uint32(1)
	for _, c := range []byte(wire) {
		n = n*31 + uint32(c)
	}
	return n%100_000 + 1
}

// sent is a PUBLISH of the server.
type sent struct {
	topic   string
	payload string
	qos     byte
	id      uint16
	dup     bool
	retain  bool
	for_    []string // filters by their wire form
	expiry  uint32   // 0 = none
	count   string   // a user property, "" = none
	release bool     // it is a PUBREL of id
}

func q1(id uint16, topic, payload string, wires ...string) sent {
	return sent{topic: topic, payload: payload, qos: 1, id: id, for_: wires}
}

func q2(id uint16, topic, payload string, wires ...string) sent {
	return sent{topic: topic, payload: payload, qos: 2, id: id, for_: wires}
}

func q0(topic, payload string, wires ...string) sent {
	return sent{topic: topic, payload: payload, for_: wires}
}

func pubrel(id uint16) sent { return sent{id: id, release: true} }

// dup is the packet as it comes again.
func (s sent) again() sent { s.dup = true; return s }

func (s sent) append(dst []byte) []byte {
	if s.release {
		return packet.AppendAck(dst, packet.TypePubrel, s.id, 0)
	}
	return packettest.Append(dst, &packet.Publish{
		QoS: s.qos, ID: s.id, Dup: s.dup, Retain: s.retain, Topic: []byte(s.topic), Properties: s.properties(), Payload: []byte(s.payload),
	})
}

// properties is the block without its length.
func (s sent) properties() []byte {
	var properties []byte
	if s.expiry > 0 {
		properties = append(properties, packet.PropExpiry, byte(s.expiry>>24), byte(s.expiry>>16), byte(s.expiry>>8), byte(s.expiry))
	}
	if s.count != "" {
		properties = append(properties, packet.PropUser)
		properties = packet.AppendString(properties, "x-ruststream-retry-count")
		properties = packet.AppendString(properties, s.count)
	}
	for _, wire := range s.for_ {
		properties = append(properties, packet.PropIdentifier)
		n := number(wire)
		for n >= 128 {
			properties = append(properties, byte(n)|128)
			n >>= 7
		}
		properties = append(properties, byte(n))
	}
	return properties
}
