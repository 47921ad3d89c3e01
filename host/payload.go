// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
)

// The content types that publishing writes and decoding reads.
const (
	headerContentType = "content-type"
	typeProtobuf      = "application/protobuf"
	typeJSON          = "application/json"
)

// format is a wire form of a payload.
type format uint8

const (
	formatDefault format = iota // no content type is given
	formatJSON
	formatProtobuf
	formatUnknown
)

// formatOf reads a content type; parameters do not matter.
func formatOf(contentType string) format {
	switch t := baseType(contentType); {
	case t == "":
		return formatDefault
	case t == typeJSON, t == "text/json", strings.HasSuffix(t, "+json"):
		return formatJSON
	case t == typeProtobuf, t == "application/x-protobuf", t == "application/vnd.google.protobuf":
		return formatProtobuf
	default:
		return formatUnknown
	}
}

// isRaw reports whether a T takes the message without a codec.
func isRaw[T any]() bool {
	var zero T
	switch any(zero).(type) {
	case []byte, core.Message:
		return true
	}
	return false
}

// decode reads a message into a zero T: []byte and core.Message without a codec,
// what one of cs is for with that, values that are protobuf messages as protobuf
// unless the content type says JSON, everything else as JSON. assumed is the
// content type of a message that names none, "" = what its T is by default. It
// fills the caller's value, which costs nothing where there is no codec.
func decode[T any](cs *codecs, assumed string, m *core.Message, into *T) error {
	switch p := any(into).(type) {
	case *[]byte:
		*p = m.Payload
		return nil
	case *core.Message:
		*p = *m
		return nil
	}
	contentType := contentTypeOf(m.Headers)
	if contentType == "" {
		contentType = assumed
	}
	if c := cs.find(contentType); c != nil {
		return unmarshal(c, contentType, m.Payload, into)
	}
	f := formatOf(contentType)
	if pm, ok := protobufOf(into); ok {
		fresh := pm.ProtoReflect().Type().New().Interface()
		if err := decodeProto(f, contentType, m.Payload, fresh); err != nil {
			return err
		}
		*into = fresh.(T)
		return nil
	}
	switch f {
	case formatDefault, formatJSON:
		if err := json.Unmarshal(m.Payload, into); err != nil {
			return fmt.Errorf("decode JSON payload of %d bytes: %w", len(m.Payload), err)
		}
		return nil
	case formatProtobuf:
		return fmt.Errorf("decode payload of content type %q: %T is no protobuf message; handle one, or []byte", contentType, *into)
	default:
		return unknownContentType(contentType)
	}
}

// contentTypeOf is the content type that headers name, "" = none. The most usual
// one needs no memory.
func contentTypeOf(hs core.Headers) string {
	v, _ := last(hs, headerContentType)
	if string(v) == typeJSON {
		return typeJSON
	}
	return string(v)
}

// protobufOf is the protobuf message in v, where there is one. What cannot be one is
// not looked into, which would copy it.
func protobufOf[T any](v *T) (proto.Message, bool) {
	switch t := reflect.TypeFor[T](); {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Interface, t.NumMethod() > 0:
		m, ok := any(*v).(proto.Message)
		return m, ok
	default:
		return nil, false
	}
}

// decodeProto fills m from a payload.
func decodeProto(f format, contentType string, payload []byte, m proto.Message) error {
	switch f {
	case formatDefault, formatProtobuf:
		if err := proto.Unmarshal(payload, m); err != nil {
			return fmt.Errorf("decode protobuf payload of %d bytes: %w", len(payload), err)
		}
	case formatJSON:
		if err := protojson.Unmarshal(payload, m); err != nil {
			return fmt.Errorf("decode JSON payload of %d bytes: %w", len(payload), err)
		}
	default:
		return unknownContentType(contentType)
	}
	return nil
}

func unknownContentType(contentType string) error {
	return fmt.Errorf("decode payload of content type %q: no codec for it; add one by WithCodec, or handle []byte or core.Message", contentType)
}

// encode writes v as T is written: []byte and core.Message as they are, a content
// type that one of cs is for with that, protobuf messages as protobuf, everything
// else as JSON. contentType is what the sender asked for, "" = the default; the
// content type that is returned goes into the headers, "" = none.
func encode[T any](cs *codecs, v T, contentType string) (payload []byte, headers core.Headers, written string, err error) {
	switch p := any(v).(type) {
	case []byte:
		return p, nil, contentType, nil
	case core.Message:
		return p.Payload, p.Headers, contentType, nil
	}
	if c := cs.find(contentType); c != nil {
		payload, err = marshal(c, contentType, v)
		return payload, nil, contentType, err
	}
	if p, ok := any(v).(proto.Message); ok {
		return encodeProto(p, contentType)
	}
	switch formatOf(contentType) {
	case formatDefault, formatJSON:
		payload, err = json.Marshal(v)
		if err != nil {
			return nil, nil, "", fmt.Errorf("encode %T as JSON: %w", v, err)
		}
		return payload, nil, contentType, nil
	default:
		return nil, nil, "", fmt.Errorf("encode %T as %q: no codec for it; add one by WithCodec, or publish []byte", v, contentType)
	}
}

func encodeProto(m proto.Message, contentType string) (payload []byte, headers core.Headers, written string, err error) {
	switch formatOf(contentType) {
	case formatDefault, formatProtobuf:
		if contentType == "" {
			contentType = typeProtobuf
		}
		payload, err = proto.Marshal(m)
	case formatJSON:
		payload, err = protojson.Marshal(m)
	default:
		err = errors.New("no codec for it; add one by WithCodec, or publish []byte")
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("encode %T as %q: %w", m, contentType, err)
	}
	return payload, nil, contentType, nil
}

// last returns the last value of a header whose name matches in any case. It is
// the list's own.
func last(hs core.Headers, name string) ([]byte, bool) {
	for i := len(hs) - 1; i >= 0; i-- {
		if strings.EqualFold(hs[i].Name, name) {
			return hs[i].Value, true
		}
	}
	return nil, false
}

// lookup is last, as text.
func lookup(hs core.Headers, name string) (string, bool) {
	v, ok := last(hs, name)
	return string(v), ok
}
