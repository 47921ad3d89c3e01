// SPDX-License-Identifier: Apache-2.0

package packet

import "github.com/eclipse/paho.golang/packets"

// AppendSubscribe appends a SUBSCRIBE of at least one filter, all under one
// subscription identifier, 0 = none.
func AppendSubscribe(dst []byte, id uint16, identifier uint32, subs []Subscription) ([]byte, error) {
	out := packets.Subscribe{PacketID: id, Properties: &packets.Properties{}}
	if identifier != 0 {
		n := int(identifier)
		out.Properties.SubscriptionIdentifier = &n
	}
	for i := range subs {
		s := &subs[i]
		if err := checkString("filter", s.Filter); err != nil {
			return dst, err
		}
		out.Subscriptions = append(out.Subscriptions, packets.SubOptions{
			Topic: s.Filter, QoS: s.QoS, NoLocal: s.NoLocal,
			RetainAsPublished: s.RetainAsPublished, RetainHandling: s.RetainHandling,
		})
	}
	return appendPacket(dst, &out), nil
}

// AppendUnsubscribe appends an UNSUBSCRIBE of at least one filter.
func AppendUnsubscribe(dst []byte, id uint16, filters []string) ([]byte, error) {
	for _, f := range filters {
		if err := checkString("filter", f); err != nil {
			return dst, err
		}
	}
	out := packets.Unsubscribe{PacketID: id, Topics: filters, Properties: &packets.Properties{}}
	return appendPacket(dst, &out), nil
}

// AppendDisconnect appends a DISCONNECT.
func AppendDisconnect(dst []byte, code byte) []byte {
	if code == CodeSuccess {
		return append(dst, TypeDisconnect<<4, 0) // the shortest form (3.14.2.1)
	}
	return append(dst, TypeDisconnect<<4, 1, code)
}
