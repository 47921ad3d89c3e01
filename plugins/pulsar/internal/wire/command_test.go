// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
)

// command is a BaseCommand with the fields of one type.
func command(t Type, body []byte) []byte {
	return appendBytes(appendVarint(nil, 1, uint64(t)), protowire.Number(t), body)
}

func TestParseCommand(t *testing.T) {
	errorOf := appendText(appendVarint(appendVarint(nil, 1, 7), 2, 5), 3, "busy")
	features := appendVarint(appendVarint(nil, 1, 1), 5, 1)
	for name, tt := range map[string]struct {
		in   []byte
		want Command
	}{
		"connected": {
			command(TypeConnected, appendBytes(appendVarint(appendVarint(appendText(nil, 1, "Pulsar 4"), 2, 21), 3, 5<<20), 4, features)),
			Command{Type: TypeConnected, ServerVersion: "Pulsar 4", Protocol: 21, MaxMessageSize: 5 << 20, NoAutoCreate: true},
		},
		"connected, little said": {command(TypeConnected, appendText(nil, 1, "x")), Command{Type: TypeConnected, ServerVersion: "x"}},
		"error":                  {command(TypeError, errorOf), Command{Type: TypeError, Request: 7, Failed: true, Code: ConsumerBusy, Message: "busy"}},
		"error of no request": {
			command(TypeError, appendVarint(appendVarint(nil, 1, math.MaxUint64), 2, 3)),
			Command{Type: TypeError, Request: math.MaxUint64, Failed: true, Code: AuthenticationError},
		},
		"partitions": {
			command(TypePartitionsResponse, appendVarint(appendVarint(appendVarint(nil, 1, 4), 2, 9), 3, 0)),
			Command{Type: TypePartitionsResponse, Request: 9, Partitions: 4},
		},
		"partitions refused": {
			command(TypePartitionsResponse, appendText(appendVarint(appendVarint(appendVarint(nil, 2, 9), 3, 1), 4, 11), 5, "gone")),
			Command{Type: TypePartitionsResponse, Request: 9, Failed: true, Code: TopicNotFound, Message: "gone"},
		},
		"topics": {
			command(TypeTopicsResponse, appendText(appendText(appendVarint(nil, 1, 3), 2, "a"), 2, "b")),
			Command{Type: TypeTopicsResponse, Request: 3, Topics: []string{"a", "b"}},
		},
		"challenge": {
			command(TypeAuthChallenge, appendVarint(appendBytes(appendText(nil, 1, "4"), 2, appendText(nil, 1, "token")), 3, 19)),
			Command{Type: TypeAuthChallenge, AuthMethod: "token"},
		},
		"success": {command(TypeSuccess, appendVarint(nil, 1, 4)), Command{Type: TypeSuccess, Request: 4}},
		"producer": {
			command(TypeProducerSuccess, appendText(appendVarint(nil, 1, 4), 2, "p")),
			Command{Type: TypeProducerSuccess, Request: 4, Name: "p", LastSequence: -1},
		},
		"producer with a number": {
			command(TypeProducerSuccess, appendVarint(appendText(appendVarint(nil, 1, 4), 2, "p"), 3, 70)),
			Command{Type: TypeProducerSuccess, Request: 4, Name: "p", LastSequence: 70},
		},
		"send error": {
			command(TypeSendError, appendText(appendVarint(appendVarint(appendVarint(nil, 1, 3), 2, 70), 3, 9), 4, "bits")),
			Command{Type: TypeSendError, Producer: 3, Sequence: 70, Failed: true, Code: ChecksumError, Message: "bits"},
		},
		"lookup": {
			command(TypeLookupResponse, appendVarint(appendVarint(appendVarint(appendText(appendText(nil, 1, "pulsar://a"), 2, "pulsar+ssl://a"), 3, 1), 4, 6), 8, 1)),
			Command{Type: TypeLookupResponse, Request: 6, Broker: "pulsar://a", BrokerTLS: "pulsar+ssl://a", Proxy: true},
		},
		"lookup elsewhere": {
			command(TypeLookupResponse, appendVarint(appendVarint(appendVarint(appendText(nil, 1, "pulsar://b"), 3, 0), 4, 6), 5, 1)),
			Command{Type: TypeLookupResponse, Request: 6, Broker: "pulsar://b", Redirect: true, Authoritative: true},
		},
		"lookup refused": {
			command(TypeLookupResponse, appendText(appendVarint(appendVarint(appendVarint(nil, 3, 2), 4, 6), 6, 6), 7, "not yet")),
			Command{Type: TypeLookupResponse, Request: 6, Failed: true, Code: ServiceNotReady, Message: "not yet"},
		},
		"last id": {
			command(TypeLastIDResponse, appendVarint(appendPosition(appendPosition(nil, 1, 5, 6), 3, 5, 2), 2, 8)),
			Command{Type: TypeLastIDResponse, Request: 8, LastID: MessageID{5, 6, NoBatch, 0}, Marked: MessageID{5, 2, NoBatch, 0}},
		},
		"last id in a batch, of an empty topic": {
			command(TypeLastIDResponse, appendVarint(appendBytes(nil, 1, appendVarint(appendVarint(nil, 1, math.MaxUint64), 4, 3)), 2, 8)),
			Command{Type: TypeLastIDResponse, Request: 8, LastID: MessageID{-1, 0, 3, 0}},
		},
		"turn":           {command(TypeActiveConsumer, appendVarint(appendVarint(nil, 1, 7), 2, 1)), Command{Type: TypeActiveConsumer, Consumer: 7, Active: true}},
		"turn of others": {command(TypeActiveConsumer, appendVarint(nil, 1, 7)), Command{Type: TypeActiveConsumer, Consumer: 7}},
		"consumer closed": {
			command(TypeCloseConsumer, appendVarint(appendVarint(nil, 1, 7), 2, math.MaxUint64)),
			Command{Type: TypeCloseConsumer, Consumer: 7},
		},
		"producer closed": {command(TypeCloseProducer, appendVarint(appendVarint(nil, 1, 7), 2, 1)), Command{Type: TypeCloseProducer, Producer: 7}},
		"end of topic":    {command(TypeEndOfTopic, appendVarint(nil, 1, 7)), Command{Type: TypeEndOfTopic, Consumer: 7}},
		"acked":           {command(TypeAckResponse, appendVarint(appendVarint(nil, 1, 7), 6, 9)), Command{Type: TypeAckResponse, Consumer: 7, Request: 9}},
		"ack refused": {
			command(TypeAckResponse, appendVarint(appendText(appendVarint(appendVarint(nil, 1, 7), 4, 2), 5, "disk"), 6, 9)),
			Command{Type: TypeAckResponse, Consumer: 7, Request: 9, Failed: true, Code: PersistenceError, Message: "disk"},
		},
		"migrated":           {command(TypeTopicMigrated, appendVarint(nil, 1, 7)), Command{Type: TypeTopicMigrated}},
		"ping":               {appendVarint(nil, 1, uint64(TypePing)), Command{Type: TypePing}},
		"fields not known":   {command(TypePartitionsResponse, append(appendVarint(appendVarint(nil, 2, 1), 99, 1), 0x0d, 1, 2, 3, 4)), Command{Type: TypePartitionsResponse, Request: 1}},
		"a type not known":   {command(99, []byte{0xff}), Command{Type: 99}},
		"fields before type": {append(appendBytes(nil, 33, appendVarint(nil, 1, 3)), appendVarint(nil, 1, 33)...), Command{Type: TypeTopicsResponse, Request: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCommand(tt.in)
			if err != nil || !cmp.Equal(got, tt.want) {
				t.Errorf("got %v\n%s", err, cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestParseCommandRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []byte
		want string
	}{
		"nothing":           {nil, "no type"},
		"no type":           {appendBytes(nil, 14, nil), "no type"},
		"negative type":     {appendVarint(nil, 1, math.MaxUint64), "no type"},
		"no fields":         {appendVarint(nil, 1, uint64(TypeError)), "ERROR without its fields"},
		"fields of another": {appendBytes(appendVarint(nil, 1, uint64(TypeError)), 3, nil), "ERROR without its fields"},
		"cut in a tag":      {[]byte{0x08}, "field 1"},
		"no field":          {[]byte{0x00}, "field"},
		"cut in the fields": {command(TypeError, []byte{0x1a, 0x05, 'x'}), "field 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCommand(tt.in)
			if e, ok := errors.AsType[*FrameError](err); !ok || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("got %v; want a frame error with %q", err, tt.want)
			}
		})
	}
}

// Codes and types are called as the protocol does, and by their numbers where it has no
// name for them.
func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		UnknownError.String(): "UnknownError", ConsumerBusy.String(): "ConsumerBusy", ProducerFenced.String(): "ProducerFenced",
		ServerError(77).String(): "ServerError(77)", ServerError(-1).String(): "ServerError(-1)",
		TypeTopics.String(): "GET_TOPICS_OF_NAMESPACE", TypeActiveConsumer.String(): "ACTIVE_CONSUMER_CHANGE", Type(99).String(): "command 99",
		NoCompression.String(): "NONE", Compression(9).String(): "compression 9",
	} {
		if got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
}

func TestReceipt(t *testing.T) {
	id := appendPosition(nil, 3, 5, 6)
	for name, tt := range map[string]struct {
		in   []byte
		want SendReceipt
		bad  string
	}{
		"one": {
			in:   command(TypeSendReceipt, append(appendVarint(appendVarint(nil, 1, 3), 2, 70), id...)),
			want: SendReceipt{Producer: 3, Sequence: 70, Ledger: 5, Entry: 6, Partition: -1},
		},
		"batch, in a partition": {
			in: command(TypeSendReceipt, appendVarint(appendBytes(appendVarint(appendVarint(nil, 1, 3), 2, 70), 3,
				appendVarint(appendVarint(appendVarint(nil, 1, 5), 2, 6), 3, 2)), 4, 79)),
			want: SendReceipt{Producer: 3, Sequence: 70, Highest: 79, Ledger: 5, Entry: 6, Partition: 2},
		},
		"had it already": {
			in:   command(TypeSendReceipt, appendPosition(appendVarint(appendVarint(nil, 1, 3), 2, 70), 3, -1, -1)),
			want: SendReceipt{Producer: 3, Sequence: 70, Ledger: -1, Entry: -1, Partition: -1},
		},
		"without a place": {
			in:   command(TypeSendReceipt, appendVarint(appendVarint(nil, 1, 3), 2, 70)),
			want: SendReceipt{Producer: 3, Sequence: 70, Ledger: -1, Entry: -1, Partition: -1},
		},
		"no fields":      {in: appendVarint(nil, 1, 7), bad: "SEND_RECEIPT without its fields"},
		"broken":         {in: command(TypeSendReceipt, []byte{0x08}), bad: "SEND_RECEIPT is broken"},
		"place broken":   {in: command(TypeSendReceipt, appendBytes(nil, 3, []byte{0x08})), bad: "SEND_RECEIPT is broken"},
		"command broken": {in: append(command(TypeSendReceipt, nil), 0x08), bad: "command is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Frame{Type: TypeSendReceipt, Command: tt.in}).Receipt()
			if tt.bad != "" {
				if e, ok := errors.AsType[*FrameError](err); !ok || !strings.Contains(e.Error(), tt.bad) {
					t.Errorf("got %v; want a frame error with %q", err, tt.bad)
				}
			} else if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestDelivery(t *testing.T) {
	id := appendPosition(nil, 2, 5, 6)
	for name, tt := range map[string]struct {
		in   []byte
		want Delivery
		bad  string
	}{
		"one": {in: command(TypeMessage, append(appendVarint(nil, 1, 3), id...)), want: Delivery{Consumer: 3, Ledger: 5, Entry: 6, Partition: -1}},
		"all said": {
			in: command(TypeMessage, appendVarint(appendVarint(appendVarint(appendVarint(appendBytes(appendVarint(nil, 1, 3), 2,
				appendVarint(appendVarint(appendVarint(nil, 1, 5), 2, 6), 3, 2)), 3, 4), 4, math.MaxUint64), 4, 1), 5, 1)),
			want: Delivery{Consumer: 3, Ledger: 5, Entry: 6, Partition: 2, Redelivered: 4, Left: []uint64{math.MaxUint64, 1}},
		},
		"packed": {
			in:   command(TypeMessage, appendBytes(id, 4, []byte{5, 0x80, 1})),
			want: Delivery{Ledger: 5, Entry: 6, Partition: -1, Left: []uint64{5, 128}},
		},
		"no fields":      {in: appendVarint(nil, 1, 9), bad: "MESSAGE without its fields"},
		"broken":         {in: command(TypeMessage, []byte{0x08}), bad: "MESSAGE is broken"},
		"place broken":   {in: command(TypeMessage, appendBytes(nil, 2, []byte{0x08})), bad: "MESSAGE is broken"},
		"bits broken":    {in: command(TypeMessage, appendBytes(id, 4, []byte{0x80})), bad: "MESSAGE is broken"},
		"command broken": {in: append(command(TypeMessage, nil), 0x08), bad: "command is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Delivery{Consumer: 99, Redelivered: 99, Left: []uint64{1}, Count: 99} // of another
			err := (&Frame{Type: TypeMessage, Command: tt.in, Payload: []byte("x")}).Delivery(&d)
			if tt.bad != "" {
				if e, ok := errors.AsType[*FrameError](err); !ok || !strings.Contains(e.Error(), tt.bad) {
					t.Errorf("got %v; want a frame error with %q", err, tt.bad)
				}
				return
			}
			tt.want.Payload = []byte("x")
			if diff := cmp.Diff(tt.want, d, cmpopts.IgnoreUnexported(Delivery{})); err != nil || diff != "" {
				t.Errorf("got %v\n%s", err, diff)
			}
		})
	}
}
