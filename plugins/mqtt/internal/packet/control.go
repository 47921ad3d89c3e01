// SPDX-License-Identifier: Apache-2.0

package packet

// ConnectParams is what a CONNECT says (3.1).
type ConnectParams struct {
	ClientID            string
	CleanStart          bool
	KeepAlive           uint16 // seconds, 0 = off
	Username            string // "" = none
	Password            []byte // nil = none
	SessionExpiry       uint32 // seconds, 0 = the session ends with the connection
	ReceiveMaximum      uint16 // 0 = not told, and so 65535
	MaxPacket           uint32 // bytes, 0 = not told, and so no limit
	ResponseInformation bool   // asks for it
	Will                *Will  // nil = none
}

// Will is the message that the server publishes when the connection is lost.
type Will struct {
	Topic       string
	Payload     []byte // at most MaxString bytes
	QoS         byte
	Retain      bool
	ContentType string // "" = none
	Delay       uint32 // seconds
	Expiry      uint32 // seconds, 0 = does not expire
}

// Connack is a CONNACK (3.2), with the standard's defaults for what it does not
// say.
type Connack struct {
	SessionPresent      bool
	Code                byte
	Reason              string // the server's own words, "" = none
	ReceiveMaximum      uint16 // 65535 by default
	MaximumQoS          byte   // 2 by default
	Retain              bool   // retained messages are there, true by default
	Wildcards           bool   // as are filters with wildcards
	Identifiers         bool   // subscription identifiers
	Shared              bool   // and shared subscriptions
	MaxPacket           uint32 // 0 = no limit
	SessionExpiry       uint32 // seconds, where SetsSessionExpiry
	SetsSessionExpiry   bool   // false = what CONNECT asked for
	KeepAlive           uint16 // seconds, where SetsKeepAlive
	SetsKeepAlive       bool   // false = what CONNECT said
	ClientID            string // that the server assigned
	ResponseInformation string
	ServerReference     string // where to go with 0x9C and 0x9D
}

// Subscription is one filter of a SUBSCRIBE.
type Subscription struct {
	Filter            string // as on the wire, with $share/ where it is shared
	QoS               byte
	NoLocal           bool
	RetainAsPublished bool
	RetainHandling    byte // 0 = always, 1 = for a new subscription, 2 = never
}

// Suback is a SUBACK or UNSUBACK: a code for each filter, in their order.
type Suback struct {
	ID     uint16
	Codes  []byte
	Reason string // the server's own words, "" = none
}

// Disconnect is a server's DISCONNECT (3.14).
type Disconnect struct {
	Code            byte
	Reason          string // the server's own words, "" = none
	ServerReference string // where to go with 0x9C and 0x9D
}
