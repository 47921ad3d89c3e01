// SPDX-License-Identifier: Apache-2.0

package packet

// acks, in sets of packet types.
const acks = 1<<TypePuback | 1<<TypePubrec | 1<<TypePubrel | 1<<TypePubcomp

// allowed are the packets that have a property (2.2.2.2), of those that a server
// sends beside PUBLISH.
var allowed = [len(kinds)]uint16{
	propSessionExpiry:     1<<TypeConnack | 1<<TypeDisconnect,
	propAssignedClientID:  1 << TypeConnack,
	propServerKeepAlive:   1 << TypeConnack,
	propAuthMethod:        1<<TypeConnack | 1<<TypeAuth,
	propAuthData:          1<<TypeConnack | 1<<TypeAuth,
	propResponseInfo:      1 << TypeConnack,
	propServerReference:   1<<TypeConnack | 1<<TypeDisconnect,
	propReasonString:      acks | 1<<TypeConnack | 1<<TypeSuback | 1<<TypeUnsuback | 1<<TypeDisconnect | 1<<TypeAuth,
	propReceiveMaximum:    1 << TypeConnack,
	propTopicAliasMaximum: 1 << TypeConnack,
	propMaximumQoS:        1 << TypeConnack,
	propRetainAvailable:   1 << TypeConnack,
	PropUser:              acks | 1<<TypeConnack | 1<<TypeSuback | 1<<TypeUnsuback | 1<<TypeDisconnect | 1<<TypeAuth,
	propMaximumPacket:     1 << TypeConnack,
	propWildcards:         1 << TypeConnack,
	propIdentifiers:       1 << TypeConnack,
	propShared:            1 << TypeConnack,
}

// checkProperties checks the block of a packet other than PUBLISH: each property
// is one that the packet has, stands there once and whole, and has a value that
// it may have, but for Maximum QoS: a server that says 2 means no limit. It returns
// the reason string.
func checkProperties(typ byte, block []byte) (reason string, err error) {
	var seen uint64
	for rest := block; len(rest) > 0; {
		id := rest[0]
		var f Property
		if f, rest = cutProperty(rest); f.ID == 0 {
			return "", malformed(typ, "property 0x%02X is unknown or cut off", id)
		}
		if allowed[f.ID]&(1<<typ) == 0 {
			return "", violation(typ, "property 0x%02X, which it does not have", f.ID)
		}
		if f.ID == PropUser {
			continue
		}
		if seen&(1<<f.ID) != 0 {
			return "", violation(typ, "property 0x%02X twice", f.ID)
		}
		seen |= 1 << f.ID
		switch f.ID {
		case propReasonString:
			reason = text(f.Value)
		case propReceiveMaximum, propMaximumPacket:
			if f.Number == 0 {
				return "", violation(typ, "property 0x%02X is 0", f.ID)
			}
		case propRetainAvailable, propWildcards, propIdentifiers, propShared:
			if f.Number > 1 {
				return "", violation(typ, "property 0x%02X is %d", f.ID, f.Number)
			}
		}
	}
	return reason, nil
}
