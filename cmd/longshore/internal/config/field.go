// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"reflect"
	"strconv"
	"strings"
)

// field is what the tags of a struct's field say.
type field struct {
	index    []int // through embedded structs
	name     string
	required bool
	env      bool
	doc      string
	enum     []string
	min, max string
	like     string // pattern of a text, of each text of a list, or of the keys of a map
	as       string // like, for people
	absent   string // what holds without it, "" = none
	typ      reflect.Type
}

// fieldsOf returns the fields of the form that the struct t has.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, sf := range reflect.VisibleFields(t) {
		name, ok := sf.Tag.Lookup("json")
		if !ok {
			continue
		}
		f := field{
			index:    sf.Index,
			name:     name,
			required: sf.Tag.Get("required") == "true",
			env:      sf.Tag.Get("env") == "true",
			doc:      sf.Tag.Get("doc"),
			min:      sf.Tag.Get("min"),
			max:      sf.Tag.Get("max"),
			like:     sf.Tag.Get("like"),
			as:       sf.Tag.Get("as"),
			absent:   sf.Tag.Get("without"),
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

// element returns f for the elements of its list or map. The keys of a map are
// what its pattern is about.
func (f field) element() field {
	if f.typ.Kind() == reflect.Map || f.typ.Elem().Kind() != reflect.String {
		f.like, f.as = "", ""
	}
	f.typ = f.typ.Elem()
	return f
}

// whole returns the range of a whole number.
func (f field) whole() (least, most int64) {
	least, _ = strconv.ParseInt(f.min, 10, 64)
	most, err := strconv.ParseInt(f.max, 10, 64)
	switch {
	case err == nil:
	case f.typ.Kind() == reflect.Int32:
		most = math.MaxInt32
	default:
		most = math.MaxInt64
	}
	return least, most
}

// without says what holds where the field is left out.
func (f field) without() string {
	if f.absent == "" {
		return "none"
	}
	return f.absent
}
