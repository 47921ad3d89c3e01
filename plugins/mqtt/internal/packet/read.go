// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"math"
	"slices"

	"github.com/eclipse/paho.golang/packets"
)

// ParseConnack reads a CONNACK. The error is a *ProtocolError, with CodeVersion
// where the server speaks an older MQTT: its CONNACK has no properties. A refusal
// is none of an error, and has no session whatever it says [MQTT-3.2.2-6].
func ParseConnack(p *Packet) (*Connack, error) {
	if p.Type == TypeConnack && len(p.Body) == 2 {
		return nil, &ProtocolError{Code: CodeVersion, Type: p.Type, Reason: "the server answers as one of MQTT 3.1.1 or older does"}
	}
	in := packets.Connack{Properties: &packets.Properties{}}
	reason, err := unpack(p, 2, &in)
	if err != nil {
		return nil, err
	}
	if p.Body[0]&^1 != 0 {
		return nil, malformed(p.Type, "flags 0x%02X", p.Body[0]) // [MQTT-3.2.2-1]
	}
	if in.ReasonCode != CodeSuccess && in.ReasonCode < CodeError {
		return nil, violation(p.Type, "reason code 0x%02X", in.ReasonCode)
	}
	props := in.Properties
	out := &Connack{
		SessionPresent: in.SessionPresent && in.ReasonCode == CodeSuccess, Code: in.ReasonCode, Reason: reason,
		ReceiveMaximum: orElse(props.ReceiveMaximum, math.MaxUint16),
		MaximumQoS:     min(orElse(props.MaximumQOS, 2), 2),
		Retain:         orElse(props.RetainAvailable, 1) == 1,
		Wildcards:      orElse(props.WildcardSubAvailable, 1) == 1,
		Identifiers:    orElse(props.SubIDAvailable, 1) == 1,
		Shared:         orElse(props.SharedSubAvailable, 1) == 1,
		MaxPacket:      orElse(props.MaximumPacketSize, 0),
		SessionExpiry:  orElse(props.SessionExpiryInterval, 0), SetsSessionExpiry: props.SessionExpiryInterval != nil,
		KeepAlive: orElse(props.ServerKeepAlive, 0), SetsKeepAlive: props.ServerKeepAlive != nil,
		ClientID:            text([]byte(props.AssignedClientID)),
		ResponseInformation: props.ResponseInfo,
		ServerReference:     text([]byte(props.ServerReference)),
	}
	return out, nil
}

func orElse[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// ParseSuback reads a SUBACK or an UNSUBACK. The error is a *ProtocolError.
func ParseSuback(p *Packet) (*Suback, error) {
	out := &Suback{}
	var err error
	if p.Type == TypeUnsuback {
		in := packets.Unsuback{Properties: &packets.Properties{}}
		out.Reason, err = unpack(p, 2, &in)
		out.ID, out.Codes = in.PacketID, slices.Clone(in.Reasons)
	} else {
		in := packets.Suback{Properties: &packets.Properties{}}
		out.Reason, err = unpack(p, 2, &in)
		out.ID, out.Codes = in.PacketID, slices.Clone(in.Reasons)
	}
	if err != nil {
		return nil, err
	}
	if out.ID == 0 {
		return nil, malformed(p.Type, "packet identifier 0")
	}
	return out, nil
}

// ParseDisconnect reads a DISCONNECT. The error is a *ProtocolError.
func ParseDisconnect(p *Packet) (*Disconnect, error) {
	switch len(p.Body) {
	case 0: // then the code is 0x00 (3.14.2.1); the library asks for one
		return &Disconnect{}, nil
	case 1:
		return &Disconnect{Code: p.Body[0]}, nil
	}
	in := packets.Disconnect{Properties: &packets.Properties{}}
	reason, err := unpack(p, 1, &in)
	if err != nil {
		return nil, err
	}
	return &Disconnect{Code: in.ReasonCode, Reason: reason, ServerReference: text([]byte(in.Properties.ServerReference))}, nil
}
