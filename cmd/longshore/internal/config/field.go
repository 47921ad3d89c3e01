// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"strings"
)

// field is what the tags of a struct's field say.
type field struct {
	index    int
	name     string
	required bool
	env      bool
	doc      string
	enum     []string
	min      string
	like     string // pattern of a text, of each text of a list, or of the keys of a map
	as       string // like, for people
	typ      reflect.Type
}

// fieldsOf returns the fields of the form that the struct t has.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, ok := sf.Tag.Lookup("json")
		if !ok {
			continue
		}
		f := field{
			index:    i,
			name:     name,
			required: sf.Tag.Get("required") == "true",
			env:      sf.Tag.Get("env") == "true",
			doc:      sf.Tag.Get("doc"),
			min:      sf.Tag.Get("min"),
			like:     sf.Tag.Get("like"),
			as:       sf.Tag.Get("as"),
			typ:      sf.Type,
		}
		if enum := sf.Tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		fields = append(fields, f)
	}
	return fields
}

// names returns the names of fields.
func names(fields []field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

// element returns f for the elements of its list or map.
func (f field) element() field {
	f.typ = f.typ.Elem()
	if f.typ.Kind() != reflect.String {
		f.like, f.as = "", ""
	}
	return f
}
