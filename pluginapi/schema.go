// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"reflect"

	"github.com/longshore-go/longshore/pluginapi/internal/schema"
)

// Schema is a JSON Schema (draft 2020-12) derived from a tagged struct, see
// [SchemaOf]. The zero value describes an object without any field.
type Schema struct {
	json []byte // nil = no settings
	typ  *schema.Type
	any  bool
}

// AnySchema describes an object with any fields, for transports that stand in
// for others or pass options on. They read them with [Options.JSON]; a log shows
// none of them, since any could be a secret.
func AnySchema() Schema {
	return Schema{json: []byte(`{"type":"object"}`), any: true}
}

// SchemaOf derives the schema of T, a struct. Fields are read by their tags:
//
//	json      the name, as in encoding/json; "-" leaves the field out
//	doc       one line for people
//	required  "true": must be given
//	default   taken when the field is not given; plain for texts, durations and
//	          secrets, JSON for everything else
//	min, max  least and most value; of a text its characters, of a list or map
//	          its entries
//	enum      comma-separated texts, one of which it must be
//
// A blank field (_ struct{}) with the tags unsupported and fix says of a name that
// people may know from elsewhere that there is no such field, and what to do in
// its place.
//
// Fields can be strings, booleans, numbers, [core.Duration], [core.Secret],
// types that read themselves from text (encoding.TextUnmarshaler), nested
// structs, slices and maps with string keys, and pointers to these where "not
// given" and zero differ. Unknown fields and doubled ones are refused.
//
// SchemaOf panics on any other type and on tags that contradict each other: both
// are mistakes in the transport's own source.
func SchemaOf[T any]() Schema {
	t, err := schema.Of(reflect.TypeFor[T]())
	if err != nil {
		panic("pluginapi: " + err.Error())
	}
	b, err := t.JSON()
	if err != nil {
		panic("pluginapi: " + err.Error())
	}
	return Schema{json: b, typ: t}
}

// JSON returns the schema as it travels, nil for the zero value.
func (s Schema) JSON() []byte { return append([]byte(nil), s.json...) }

// MarshalJSON returns the schema, null for the zero value.
func (s Schema) MarshalJSON() ([]byte, error) {
	if s.json == nil {
		return []byte("null"), nil
	}
	return s.json, nil
}

// options returns raw as options under the schema, and what is wrong with them.
func (s Schema) options(raw []byte) (Options, []Diagnostic) {
	o := Options{raw: raw, typ: s.typ}
	if s.any {
		return o, schema.CheckObject(raw)
	}
	if s.typ == nil {
		o.typ = nothing()
	}
	return o, o.typ.Check(raw)
}

// nothing is the shape of an object without any field.
func nothing() *schema.Type { return &schema.Type{Go: reflect.TypeFor[struct{}]()} }
