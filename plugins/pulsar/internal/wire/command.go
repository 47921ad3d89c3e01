// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Type is the kind of a command (BaseCommand.Type).
type Type int32

// The commands that are read or written here. But for the two of partition counts a
// command's field in BaseCommand has the number of its type, and they too.
const (
	TypeConnect            Type = 2
	TypeConnected          Type = 3
	TypeError              Type = 14
	TypePing               Type = 18
	TypePong               Type = 19
	TypePartitions         Type = 21 // PARTITIONED_METADATA
	TypePartitionsResponse Type = 22
	TypeTopics             Type = 32 // GET_TOPICS_OF_NAMESPACE
	TypeTopicsResponse     Type = 33
	TypeAuthChallenge      Type = 36
	TypeAuthResponse       Type = 37
)

var typeNames = map[Type]string{ // never written to
	TypeConnect: "CONNECT", TypeConnected: "CONNECTED", TypeError: "ERROR", TypePing: "PING", TypePong: "PONG",
	TypePartitions: "PARTITIONED_METADATA", TypePartitionsResponse: "PARTITIONED_METADATA_RESPONSE",
	TypeTopics: "GET_TOPICS_OF_NAMESPACE", TypeTopicsResponse: "GET_TOPICS_OF_NAMESPACE_RESPONSE",
	TypeAuthChallenge: "AUTH_CHALLENGE", TypeAuthResponse: "AUTH_RESPONSE",
}

// String is the type's name in the protocol, or its number.
func (t Type) String() string {
	if s, ok := typeNames[t]; ok {
		return s
	}
	return "command " + strconv.Itoa(int(t))
}

// Command is a command of a broker. Beside Type each field belongs to the commands
// that it names, and is its zero value in others.
type Command struct {
	Type Type

	Request uint64      // ERROR and the responses: whose answer it is
	Failed  bool        // ERROR, and a response that says so
	Code    ServerError // why it has failed
	Message string      // the broker's words for it

	ServerVersion  string // CONNECTED
	Protocol       int32  // CONNECTED: the version of the protocol
	MaxMessageSize int32  // CONNECTED: bytes of the largest message, 0 = not said
	NoAutoCreate   bool   // CONNECTED: partition counts can be asked for without creating the topic

	AuthMethod string // AUTH_CHALLENGE: the method asked for, "" = not said

	Topics     []string // GET_TOPICS_OF_NAMESPACE_RESPONSE: full names
	Partitions uint32   // PARTITIONED_METADATA_RESPONSE: 0 = the topic has none
}

// ParseCommand reads a command. Other types than those above are returned with Type
// alone. Errors are *FrameError. b is not kept.
func ParseCommand(b []byte) (Command, error) {
	var c Command
	var body []byte
	var bodyOf protowire.Number
	err := fields(b, func(f field) {
		switch {
		case f.number == 1 && f.kind == protowire.VarintType:
			c.Type = Type(f.varint) //nolint:gosec // an enum; what is beyond is no type known
		case f.kind == protowire.BytesType:
			body, bodyOf = f.bytes, f.number
		}
	})
	switch {
	case err != nil:
		return Command{}, err
	case c.Type <= 0:
		return Command{}, bad("the command has no type")
	}
	read, known := readers[c.Type]
	if !known {
		return c, nil
	}
	if bodyOf != protowire.Number(c.Type) {
		return Command{}, bad("%s without its fields", c.Type)
	}
	if err := fields(body, func(f field) { read(&c, f) }); err != nil {
		return Command{}, err
	}
	return c, nil
}

// readers take the fields of a command; never written to.
var readers = map[Type]func(*Command, field){
	TypeConnected:          (*Command).connected,
	TypeError:              (*Command).failed,
	TypePartitionsResponse: (*Command).partitions,
	TypeTopicsResponse:     (*Command).topics,
	TypeAuthChallenge:      (*Command).challenge,
}

func (c *Command) connected(f field) {
	switch f.number {
	case 1:
		c.ServerVersion = f.text()
	case 2:
		c.Protocol = f.int32()
	case 3:
		c.MaxMessageSize = f.int32()
	case 4:
		_ = fields(f.bytes, func(f field) {
			if f.number == 5 {
				c.NoAutoCreate = f.varint != 0
			}
		})
	}
}

func (c *Command) failed(f field) {
	c.Failed = true
	switch f.number {
	case 1:
		c.Request = f.varint
	case 2:
		c.Code = ServerError(f.int32())
	case 3:
		c.Message = f.text()
	}
}

func (c *Command) partitions(f field) {
	switch f.number {
	case 1:
		c.Partitions = uint32(f.varint) //nolint:gosec // uint32 in the protocol
	case 2:
		c.Request = f.varint
	case 3:
		c.Failed = f.varint != 0
	case 4:
		c.Failed, c.Code = true, ServerError(f.int32())
	case 5:
		c.Message = f.text()
	}
}

func (c *Command) topics(f field) {
	switch f.number {
	case 1:
		c.Request = f.varint
	case 2:
		c.Topics = append(c.Topics, f.text())
	}
}

func (c *Command) challenge(f field) {
	if f.number != 2 {
		return
	}
	_ = fields(f.bytes, func(f field) {
		if f.number == 1 {
			c.AuthMethod = f.text()
		}
	})
}

// field is one field of a message: varint or bytes, by its kind.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	bytes  []byte
}

func (f field) int32() int32 { return int32(f.varint) } //nolint:gosec // int32 and enums in the protocol

// text is a string as it is, for package unicode/utf8 to judge where it matters.
func (f field) text() string { return string(f.bytes) }

// fields calls read for each field of a message; those of other kinds are passed
// over.
func fields(b []byte, read func(field)) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return bad("field: %v", protowire.ParseError(n))
		}
		b = b[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return bad("field %d: %v", number, protowire.ParseError(n))
		}
		if kind == protowire.VarintType || kind == protowire.BytesType {
			read(f)
		}
		b = b[n:]
	}
	return nil
}
