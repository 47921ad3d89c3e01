// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Type is the kind of a command (BaseCommand.Type).
type Type int32

// The commands that are read or written here. A command's field in BaseCommand has the
// number of its type.
const (
	TypeConnect            Type = 2
	TypeConnected          Type = 3
	TypeSubscribe          Type = 4
	TypeProducer           Type = 5
	TypeSend               Type = 6
	TypeSendReceipt        Type = 7
	TypeSendError          Type = 8
	TypeMessage            Type = 9
	TypeAck                Type = 10
	TypeFlow               Type = 11
	TypeSuccess            Type = 13
	TypeError              Type = 14
	TypeCloseProducer      Type = 15
	TypeCloseConsumer      Type = 16
	TypeProducerSuccess    Type = 17
	TypePing               Type = 18
	TypePong               Type = 19
	TypeRedeliver          Type = 20 // REDELIVER_UNACKNOWLEDGED_MESSAGES
	TypePartitions         Type = 21 // PARTITIONED_METADATA
	TypePartitionsResponse Type = 22
	TypeLookup             Type = 23
	TypeLookupResponse     Type = 24
	TypeEndOfTopic         Type = 27 // REACHED_END_OF_TOPIC
	TypeSeek               Type = 28
	TypeLastID             Type = 29 // GET_LAST_MESSAGE_ID
	TypeLastIDResponse     Type = 30
	TypeActiveConsumer     Type = 31 // ACTIVE_CONSUMER_CHANGE
	TypeTopics             Type = 32 // GET_TOPICS_OF_NAMESPACE
	TypeTopicsResponse     Type = 33
	TypeAuthChallenge      Type = 36
	TypeAuthResponse       Type = 37
	TypeAckResponse        Type = 38
	TypeTopicMigrated      Type = 68
)

var typeNames = map[Type]string{ // never written to
	TypeConnect: "CONNECT", TypeConnected: "CONNECTED", TypeSubscribe: "SUBSCRIBE", TypeProducer: "PRODUCER",
	TypeSend: "SEND", TypeSendReceipt: "SEND_RECEIPT", TypeSendError: "SEND_ERROR", TypeMessage: "MESSAGE",
	TypeAck: "ACK", TypeFlow: "FLOW", TypeSuccess: "SUCCESS", TypeError: "ERROR",
	TypeCloseProducer: "CLOSE_PRODUCER", TypeCloseConsumer: "CLOSE_CONSUMER", TypeProducerSuccess: "PRODUCER_SUCCESS",
	TypePing: "PING", TypePong: "PONG", TypeRedeliver: "REDELIVER_UNACKNOWLEDGED_MESSAGES",
	TypePartitions: "PARTITIONED_METADATA", TypePartitionsResponse: "PARTITIONED_METADATA_RESPONSE",
	TypeLookup: "LOOKUP", TypeLookupResponse: "LOOKUP_RESPONSE", TypeEndOfTopic: "REACHED_END_OF_TOPIC",
	TypeSeek: "SEEK", TypeLastID: "GET_LAST_MESSAGE_ID", TypeLastIDResponse: "GET_LAST_MESSAGE_ID_RESPONSE",
	TypeActiveConsumer: "ACTIVE_CONSUMER_CHANGE",
	TypeTopics:         "GET_TOPICS_OF_NAMESPACE", TypeTopicsResponse: "GET_TOPICS_OF_NAMESPACE_RESPONSE",
	TypeAuthChallenge: "AUTH_CHALLENGE", TypeAuthResponse: "AUTH_RESPONSE", TypeAckResponse: "ACK_RESPONSE",
	TypeTopicMigrated: "TOPIC_MIGRATED",
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
	Failed  bool        // ERROR, SEND_ERROR, and a response that says so
	Code    ServerError // why it has failed
	Message string      // the broker's words for it

	Consumer uint64 // CLOSE_CONSUMER, ACK_RESPONSE, ACTIVE_CONSUMER_CHANGE, REACHED_END_OF_TOPIC
	Producer uint64 // CLOSE_PRODUCER, SEND_ERROR
	Sequence uint64 // SEND_ERROR: the number of the message, the first of a batch
	Active   bool   // ACTIVE_CONSUMER_CHANGE: it is the consumer's turn

	ServerVersion  string // CONNECTED
	Protocol       int32  // CONNECTED: the version of the protocol
	MaxMessageSize int32  // CONNECTED: bytes of the largest message, 0 = not said
	NoAutoCreate   bool   // CONNECTED: partition counts can be asked for without creating the topic

	AuthMethod string // AUTH_CHALLENGE: the method asked for, "" = not said

	Topics     []string // GET_TOPICS_OF_NAMESPACE_RESPONSE: full names
	Partitions uint32   // PARTITIONED_METADATA_RESPONSE: 0 = the topic has none

	Broker        string // LOOKUP_RESPONSE: the URL of the broker that serves the topic, or is to be asked
	BrokerTLS     string // LOOKUP_RESPONSE: the same with TLS
	Redirect      bool   // LOOKUP_RESPONSE: the broker is to be asked; else it serves the topic
	Authoritative bool   // LOOKUP_RESPONSE: what a lookup there is to say
	Proxy         bool   // LOOKUP_RESPONSE: the broker is reached by way of the service URL

	Name         string // PRODUCER_SUCCESS: the producer's name
	LastSequence int64  // PRODUCER_SUCCESS: the last number that the topic has of it, -1 = none or no deduplication

	LastID MessageID // GET_LAST_MESSAGE_ID_RESPONSE: where the topic ends, entry -1 = it is empty
	Marked MessageID // GET_LAST_MESSAGE_ID_RESPONSE: up to where the subscription has acked all, Ledger 0 = not said
}

// ParseCommand reads a command. Other types than those above are returned with Type
// alone. Errors are *FrameError. b is not kept.
func ParseCommand(b []byte) (Command, error) {
	var c Command
	found := false
	if err := fields(b, func(f field) {
		if f.number == 1 && f.kind == protowire.VarintType {
			c.Type = Type(f.varint) //nolint:gosec // an enum; what is beyond is no type known
		}
	}); err != nil {
		return Command{}, err
	}
	if c.Type <= 0 {
		return Command{}, bad("the command has no type")
	}
	read, known := readers[c.Type]
	if !known {
		return c, nil
	}
	c.LastSequence = c.noSequence()
	var err error
	_ = fields(b, func(f field) { // it is one message, also where it comes in parts
		if f.kind == protowire.BytesType && f.number == protowire.Number(c.Type) && err == nil {
			found, err = true, fields(f.bytes, func(f field) { read(&c, f) })
		}
	})
	switch {
	case err != nil:
		return Command{}, err
	case !found:
		return Command{}, bad("%s without its fields", c.Type)
	}
	return c, nil
}

// readers take the fields of a command; never written to.
var readers = map[Type]func(*Command, field){
	TypeConnected:          (*Command).connected,
	TypeSendError:          (*Command).sendError,
	TypeSuccess:            (*Command).success,
	TypeError:              (*Command).failed,
	TypeCloseProducer:      (*Command).ofProducer,
	TypeCloseConsumer:      (*Command).ofConsumer,
	TypeProducerSuccess:    (*Command).producer,
	TypePartitionsResponse: (*Command).partitions,
	TypeLookupResponse:     (*Command).lookup,
	TypeEndOfTopic:         (*Command).ofConsumer,
	TypeLastIDResponse:     (*Command).lastID,
	TypeActiveConsumer:     (*Command).active,
	TypeTopicsResponse:     (*Command).topics,
	TypeAuthChallenge:      (*Command).challenge,
	TypeAckResponse:        (*Command).acked,
}

// noSequence is LastSequence where the command does not say it.
func (c *Command) noSequence() int64 {
	if c.Type == TypeProducerSuccess {
		return -1
	}
	return 0
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

func (c *Command) sendError(f field) {
	c.Failed = true
	switch f.number {
	case 1:
		c.Producer = f.varint
	case 2:
		c.Sequence = f.varint
	case 3:
		c.Code = ServerError(f.int32())
	case 4:
		c.Message = f.text()
	}
}

func (c *Command) success(f field) {
	if f.number == 1 {
		c.Request = f.varint
	}
}

// ofProducer takes a CLOSE_PRODUCER, whose request is of no use: nobody answers it.
func (c *Command) ofProducer(f field) {
	if f.number == 1 {
		c.Producer = f.varint
	}
}

// ofConsumer takes a CLOSE_CONSUMER and a REACHED_END_OF_TOPIC.
func (c *Command) ofConsumer(f field) {
	if f.number == 1 {
		c.Consumer = f.varint
	}
}

func (c *Command) producer(f field) {
	switch f.number {
	case 1:
		c.Request = f.varint
	case 2:
		c.Name = f.text()
	case 3:
		c.LastSequence = int64(f.varint) //nolint:gosec // int64 in the protocol
	}
}

// lookup takes a LOOKUP_RESPONSE; the kinds of its answer are Redirect, Connect and
// Failed.
func (c *Command) lookup(f field) {
	switch f.number {
	case 1:
		c.Broker = f.text()
	case 2:
		c.BrokerTLS = f.text()
	case 3:
		c.Redirect, c.Failed = f.varint == 0, c.Failed || f.varint == 2
	case 4:
		c.Request = f.varint
	case 5:
		c.Authoritative = f.varint != 0
	case 6:
		c.Failed, c.Code = true, ServerError(f.int32())
	case 7:
		c.Message = f.text()
	case 8:
		c.Proxy = f.varint != 0
	}
}

func (c *Command) lastID(f field) {
	switch f.number {
	case 1:
		c.LastID = messageID(f.bytes)
	case 2:
		c.Request = f.varint
	case 3:
		c.Marked = messageID(f.bytes)
	}
}

// messageID is a MessageIdData.
func messageID(b []byte) MessageID {
	id := MessageID{Batch: NoBatch}
	_ = fields(b, func(f field) {
		switch f.number {
		case 1:
			id.Ledger = int64(f.varint) //nolint:gosec // uint64 in the protocol, -1 among its values
		case 2:
			id.Entry = int64(f.varint) //nolint:gosec // as above
		case 4:
			id.Batch = f.int32()
		case 6:
			id.Size = f.int32()
		}
	})
	return id
}

func (c *Command) active(f field) {
	switch f.number {
	case 1:
		c.Consumer = f.varint
	case 2:
		c.Active = f.varint != 0
	}
}

func (c *Command) acked(f field) {
	switch f.number {
	case 1:
		c.Consumer = f.varint
	case 4:
		c.Failed, c.Code = true, ServerError(f.int32())
	case 5:
		c.Message = f.text()
	case 6:
		c.Request = f.varint
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
