// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// Each code is found by the name it is written with.
func TestServerErrorNames(t *testing.T) {
	for i := range names {
		e := ServerError(i)
		if got, ok := ErrorNamed(e.String()); !ok || got != e {
			t.Errorf("%v is found as %v, %t", e, got, ok)
		}
	}
	if got := ProducerFenced.String(); got != "ProducerFenced" {
		t.Errorf("the last code is called %s", got)
	}
	if e, ok := ErrorNamed("ServerError(77)"); ok || ServerError(77).String() != "ServerError(77)" || ServerError(-1).String() != "ServerError(-1)" {
		t.Errorf("a code without a name is %v, and found as %v", ServerError(77), e)
	}
	if TypeTopics.String() != "GET_TOPICS_OF_NAMESPACE" || Type(99).String() != "command 99" {
		t.Errorf("types are called %s and %s", TypeTopics, Type(99))
	}
}

// A command's message that is there twice is one, as in every protocol buffer: of a
// field the last value counts.
func TestCommandMerged(t *testing.T) {
	body := func(b []byte, fields []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(TypeLookupResponse), protowire.BytesType), fields)
	}
	text := func(b []byte, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), s)
	}
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(TypeLookupResponse))
	b = body(b, protowire.AppendVarint(protowire.AppendTag(text(nil, "pulsar://a:1"), 4, protowire.VarintType), 7))
	b = body(b, text(nil, "pulsar://b:2"))
	c, err := ParseCommand(b)
	if err != nil || c.Request != 7 || c.Broker != "pulsar://b:2" {
		t.Errorf("%+v, %v", c, err)
	}
}
