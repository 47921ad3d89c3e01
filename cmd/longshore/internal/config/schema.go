// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
)

//go:generate go test . -run ^TestSchemaIsFresh$ -update

// durationPattern is what time.ParseDuration reads, without a sign.
const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`

// Schema returns the JSON Schema of the form, for editors and for other
// programs that write service files. It knows the shape of each field; what one
// field says of another is checked by Load alone.
func Schema() []byte {
	root := object(reflect.TypeFor[File]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/longshore-go/longshore/cmd/longshore/config.schema.json"
	root["title"] = "longshore service file"
	root["description"] = "What longshore run and longshore explain read: endpoints, and what is done with the messages that they deliver."
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(err) // maps, texts and numbers alone
	}
	return b.Bytes()
}

// object is the schema of a struct of the form.
func object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t) {
		s := schemaOf(f)
		s["description"] = f.doc
		properties[f.name] = s
		if f.required {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if t == reflect.TypeFor[Subscription]() {
		s["anyOf"] = []any{
			map[string]any{"required": []string{"forward"}},
			map[string]any{"required": []string{"exec"}},
		}
	}
	return s
}

// schemaOf is the schema of one field.
func schemaOf(f field) map[string]any {
	switch {
	case f.typ == reflect.TypeFor[map[string]any]():
		return map[string]any{"type": []string{"object", "null"}}
	case f.typ == reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": durationPattern, "examples": []string{"250ms", "1.5s", "2m"}}
	case f.typ.Kind() == reflect.Pointer:
		f.typ = f.typ.Elem()
		return schemaOf(f)
	case f.typ.Kind() == reflect.Struct:
		return object(f.typ)
	case f.typ.Kind() == reflect.Map:
		return map[string]any{
			"type":                 "object",
			"minProperties":        1,
			"propertyNames":        map[string]any{"pattern": f.like},
			"additionalProperties": schemaOf(f.element()),
		}
	case f.typ.Kind() == reflect.Slice:
		e := f.element()
		s := map[string]any{"type": "array", "items": schemaOf(e)}
		if f.required {
			s["minItems"] = 1
		}
		return s
	case f.typ.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case f.typ.Kind() == reflect.Int32, f.typ.Kind() == reflect.Int64:
		least, most := f.whole()
		s := map[string]any{"type": "integer", "minimum": least}
		if most < math.MaxInt64 {
			s["maximum"] = most
		}
		return s
	case f.typ.Kind() == reflect.Float64:
		s := map[string]any{"type": "number", "minimum": json.Number(f.min)}
		if f.max != "" {
			s["maximum"] = json.Number(f.max)
		}
		return s
	}
	s := map[string]any{"type": "string"}
	if len(f.enum) > 0 {
		s["enum"] = f.enum
	}
	if f.like != "" {
		s["pattern"] = f.like
	}
	if f.required {
		s["minLength"] = 1
	}
	return s
}
