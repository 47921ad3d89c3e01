// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"reflect"
	"strings"
)

// Codec reads and writes payloads of some content types. Its methods are called
// from any goroutine at once. A panic while a handler's message is read counts
// as one of the handler; a Publish panics with its codec.
type Codec interface {
	// ContentTypes lists what it is for, such as "application/cbor", without
	// parameters; case does not matter. It is asked once, by [WithCodec].
	ContentTypes() []string
	// Marshal returns the payload of v, which a later Marshal must not change.
	Marshal(v any) ([]byte, error)
	// Unmarshal fills v, which points to a zero value: *T, or T itself where that
	// is a pointer. data must not be changed, and what v keeps of it must be a copy:
	// v may outlive the message.
	Unmarshal(data []byte, v any) error
}

// WithCodec adds a codec for the content types that it names; it may be given
// several times, once for a content type. JSON (application/json, text/json and
// what ends in +json), protobuf (application/protobuf, application/x-protobuf,
// application/vnd.google.protobuf) and raw payloads are built in; a codec that
// names one of those content types takes its place, for every type but []byte
// and [core.Message], which never have a codec. Which one reads a message is up
// to its content-type header, see [DefaultContentType] for one without.
func WithCodec(c Codec) Option {
	at := caller()
	return Option{name: "WithCodec", place: at, many: true, set: func(o *options) *complaint {
		if c == nil {
			return &complaint{"is nil", "give a codec, or leave the option out"}
		}
		wrong, twice := o.codecs.add(c, at)
		for _, d := range twice {
			o.found = append(o.found, Finding{
				Option: "WithCodec", Message: "content type " + d.contentType + " has two codecs",
				Fix: "keep one of them", Places: places(d.first, at),
			})
		}
		return wrong
	}}
}

// codecs are those of a host that are not built in. A nil one has none.
type codecs struct{ byType map[string]registered }

// registered is a codec with the place that gave it.
type registered struct {
	codec Codec
	place place
}

// doubled says that a content type has two codecs.
type doubled struct {
	contentType string
	first       place
}

// add takes a codec in, and says which content types had one.
func (cs *codecs) add(c Codec, at place) (wrong *complaint, twice []doubled) {
	defer func() {
		if v := recover(); v != nil {
			wrong = &complaint{fmt.Sprintf("%T cannot say its content types: %v", c, v), "repair its ContentTypes, or give one that is not nil"}
		}
	}()
	types := c.ContentTypes()
	if len(types) == 0 {
		return &complaint{"names no content type", "let ContentTypes return at least one"}, nil
	}
	if cs.byType == nil {
		cs.byType = make(map[string]registered)
	}
	for _, t := range types {
		n := baseType(t)
		if n == "" || !strings.EqualFold(n, t) {
			return &complaint{
				fmt.Sprintf("%q is no content type", t), "name a type alone, such as application/cbor, without parameters and blanks",
			}, nil
		}
		if former, ok := cs.byType[n]; ok {
			twice = append(twice, doubled{n, former.place})
			continue
		}
		cs.byType[n] = registered{c, at}
	}
	return nil, twice
}

// find returns the codec for a content type, nil where it is none of these.
func (cs *codecs) find(contentType string) Codec {
	if cs == nil || len(cs.byType) == 0 || contentType == "" {
		return nil
	}
	return cs.byType[baseType(contentType)].codec
}

// empty reports whether all codecs are built in.
func (cs *codecs) empty() bool { return cs == nil || len(cs.byType) == 0 }

// baseType is a content type without its parameters, in lower case.
func baseType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// unmarshal has c fill a zero T.
func unmarshal[T any](c Codec, contentType string, payload []byte, into *T) error {
	var v any = into
	fresh, pointer := reflect.Value{}, reflect.TypeFor[T]().Kind() == reflect.Pointer
	if pointer {
		fresh = reflect.New(reflect.TypeFor[T]().Elem())
		v = fresh.Interface()
	}
	if err := c.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("decode payload of %d bytes as %q: %w", len(payload), contentType, err)
	}
	if pointer {
		*into = fresh.Interface().(T)
	}
	return nil
}

// marshal has c write v.
func marshal(c Codec, contentType string, v any) ([]byte, error) {
	payload, err := c.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T as %q: %w", v, contentType, err)
	}
	return payload, nil
}
