// SPDX-License-Identifier: Apache-2.0

// Package packet reads and writes MQTT 5 packets. PUBLISH and its acks are read
// where they lie, in the pooled memory of a [Reader], and written by this package;
// the control packets of a session are left to github.com/eclipse/paho.golang
// behind a guard, which checks their size and structure first (ADR 0111).
//
// # Caveats
//
// What a [Reader] hands out lies in its own memory: it is good until
// [Reader.Spent], or until the [Loan] that [Reader.Lend] filled is released.
package packet

import (
	"fmt"
)

// The types of packets (OASIS MQTT 5.0, 2.1.2).
const (
	TypeConnect byte = 1 + iota
	TypeConnack
	TypePublish
	TypePuback
	TypePubrec
	TypePubrel
	TypePubcomp
	TypeSubscribe
	TypeSuback
	TypeUnsubscribe
	TypeUnsuback
	TypePingreq
	TypePingresp
	TypeDisconnect
	TypeAuth
)

// MaxRemaining is the largest Remaining Length (1.5.5), and MaxSize the largest
// packet.
const (
	MaxRemaining = 1<<28 - 1
	MaxSize      = MaxRemaining + 5
)

// MaxString is the most bytes of a string or of binary data (1.5.4, 1.5.6).
const MaxString = 1<<16 - 1

// Packet is one packet as it came. Body lies in its reader's memory.
type Packet struct {
	Type  byte
	Flags byte // the four bits beside the type
	Body  []byte
}

// Name is the standard's name of a type, such as PUBLISH.
func Name(typ byte) string {
	names := [...]string{"reserved type 0", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP",
		"SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH"}
	if int(typ) < len(names) {
		return names[typ]
	}
	return fmt.Sprintf("type %d", typ)
}

// A ProtocolError says that the peer sent what is not MQTT 5, or what it must not
// send. Nothing more is read from the connection: it ends with a DISCONNECT of
// the code (4.13.1).
type ProtocolError struct {
	Code   byte   // for the DISCONNECT
	Type   byte   // of the packet, 0 = not known
	Reason string // what is wrong
}

// Error names the packet, what is wrong with it, and the code in words.
func (e *ProtocolError) Error() string {
	if e.Type == 0 {
		return fmt.Sprintf("MQTT: %s: %s", e.Reason, Word(TypeDisconnect, e.Code))
	}
	return fmt.Sprintf("MQTT: %s: %s: %s", Name(e.Type), e.Reason, Word(TypeDisconnect, e.Code))
}

func malformed(typ byte, format string, args ...any) *ProtocolError {
	return &ProtocolError{Code: CodeMalformed, Type: typ, Reason: fmt.Sprintf(format, args...)}
}

func violation(typ byte, format string, args ...any) *ProtocolError {
	return &ProtocolError{Code: CodeProtocolError, Type: typ, Reason: fmt.Sprintf(format, args...)}
}
