// SPDX-License-Identifier: Apache-2.0

package host

import (
	"reflect"
	"strings"
)

// jsonField is a field as encoding/json sees it.
type jsonField struct {
	path   string // of Go names, through embedded structs
	typ    reflect.Type
	tagged bool
}

// embedded is a struct whose fields count as those of the one around it.
type embedded struct {
	typ  reflect.Type
	path string // before its fields, "" or with a dot at its end
}

// jsonFields returns the fields of a struct that JSON has, those of embedded
// structs included. Of several with one name the outermost counts, of those the
// one whose tag says the name, and otherwise none.
func jsonFields(t reflect.Type) []jsonField {
	var out []jsonField
	hidden := make(map[string]bool)
	visited := map[reflect.Type]bool{t: true}
	for level := []embedded{{typ: t}}; len(level) > 0; {
		var l depth
		for _, e := range level {
			l.read(e)
		}
		for _, name := range l.names {
			if f := dominant(l.fields[name]); f != nil && !hidden[name] {
				out = append(out, *f)
			}
			hidden[name] = true
		}
		level = nil
		for _, e := range l.inner {
			if !visited[e.typ] {
				level = append(level, e)
			}
		}
		for _, e := range level { // twice at one depth is read twice
			visited[e.typ] = true
		}
	}
	return out
}

// depth is what structs that are embedded equally deep have.
type depth struct {
	names  []string // in their order
	fields map[string][]jsonField
	inner  []embedded
}

// read adds the fields of one struct.
func (l *depth) read(e embedded) {
	if l.fields == nil {
		l.fields = make(map[string][]jsonField)
	}
	for i := range e.typ.NumField() {
		f := e.typ.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		within := f.Anonymous && inner.Kind() == reflect.Struct
		if tag == "-" || !f.IsExported() && !within {
			continue
		}
		if within && name == "" {
			l.inner = append(l.inner, embedded{inner, e.path + f.Name + "."})
			continue
		}
		key := name
		if key == "" {
			key = f.Name
		}
		if l.fields[key] == nil {
			l.names = append(l.names, key)
		}
		l.fields[key] = append(l.fields[key], jsonField{e.path + f.Name, f.Type, name != ""})
	}
}

// dominant returns the one of several fields of one name and depth that counts,
// nil where none does.
func dominant(fs []jsonField) *jsonField {
	if len(fs) == 1 {
		return &fs[0]
	}
	var named *jsonField
	for i := range fs {
		switch {
		case !fs[i].tagged:
		case named != nil:
			return nil
		default:
			named = &fs[i]
		}
	}
	return named
}
