// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
)

// dialect is the JSON Schema that JSON writes.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// durationPattern is what time.ParseDuration reads. JSON Schema's own format
// "duration" is another one.
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// durationExamples show it to people.
var durationExamples = []string{"250ms", "1.5s", "2m"}

// The keywords of our own: what JSON Schema has no word for.
const (
	keySecret = "x-longshore-secret" // never shown
	keyMin    = "x-longshore-min"    // of a duration
	keyMax    = "x-longshore-max"
	keyNot    = "x-longshore-unsupported" // names that are refused, and what to do in their place
)

// pair is one member of an ordered object.
type pair struct {
	key   string
	value any
}

// object is a JSON object in the order of its members, so that a schema reads
// like the struct it stems from and is the same every time.
type object []pair

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(p.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// JSON returns the type as a JSON Schema of draft 2020-12.
func (t *Type) JSON() ([]byte, error) {
	return json.Marshal(append(object{{"$schema", dialect}}, t.members(&Limits{})...))
}

// members returns the keywords of a type under its limits.
func (t *Type) members(l *Limits) object {
	switch t.Kind {
	case Object:
		return t.objectMembers()
	case Dict:
		return append(object{{"type", "object"}, {"additionalProperties", t.Elem.members(&Limits{})}},
			l.members("minProperties", "maxProperties")...)
	case List:
		return append(object{{"type", "array"}, {"items", t.Elem.members(&Limits{})}},
			l.members("minItems", "maxItems")...)
	case Boolean:
		return object{{"type", "boolean"}}
	case Integer:
		return append(object{{"type", "integer"}}, l.members("minimum", "maximum")...)
	case Number:
		return append(object{{"type", "number"}}, l.members("minimum", "maximum")...)
	case Duration:
		return append(object{{"type", "string"}, {"pattern", durationPattern}, {"examples", durationExamples}}, l.members(keyMin, keyMax)...)
	case Secret:
		return append(object{{"type", "string"}, {"writeOnly", true}, {keySecret, true}},
			l.members("minLength", "maxLength")...)
	default:
		return append(object{{"type", "string"}}, l.members("minLength", "maxLength")...)
	}
}

// members returns the limits under the given keywords.
func (l *Limits) members(least, most string) object {
	var o object
	for _, b := range []struct {
		key string
		*bound
	}{{least, l.Min}, {most, l.Max}} {
		switch {
		case b.bound == nil:
		case b.key == keyMin || b.key == keyMax:
			o = append(o, pair{b.key, b.text})
		default:
			o = append(o, pair{b.key, json.Number(b.text)})
		}
	}
	if len(l.Enum) > 0 {
		o = append(o, pair{"enum", l.Enum})
	}
	return o
}

func (t *Type) objectMembers() object {
	properties := object{}
	required := []string{}
	for i := range t.Fields {
		f := &t.Fields[i]
		members := f.Type.members(&f.Limits)
		if f.Doc != "" {
			members = append(object{{"description", f.Doc}}, members...)
		}
		if f.Default != nil {
			members = append(members, pair{"default", f.defaultValue()})
		}
		properties = append(properties, pair{f.Name, members})
		if f.Required {
			required = append(required, f.Name)
		}
	}
	o := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, pair{"required", required})
	}
	if len(t.Not) > 0 {
		not := object{}
		for _, n := range t.Not {
			not = append(not, pair{n.Name, n.Fix})
		}
		o = append(o, pair{keyNot, not})
	}
	return append(o, pair{"additionalProperties", false})
}

// defaultValue returns the default as it stands in JSON.
func (f *Field) defaultValue() any {
	switch f.Type.Kind {
	case Text, Secret, Duration, Custom:
		return *f.Default
	default:
		return json.RawMessage(*f.Default)
	}
}
