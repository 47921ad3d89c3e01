// SPDX-License-Identifier: Apache-2.0

// Package schema derives the shape of settings from tagged structs, checks JSON
// against it, binds it, and writes it as JSON Schema 2020-12.
package schema

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/longshore-go/longshore/core"
)

// Kind is what a value looks like in JSON.
type Kind uint8

// The kinds.
const (
	Object   Kind = iota // a struct: fields, nothing else
	Dict                 // a map from text
	List                 // a slice or an array
	Text                 // a string
	Secret               // a string that is never shown
	Duration             // a string such as "1.5s"
	Custom               // a string that its type reads itself
	Boolean
	Integer
	Number
)

// Type is the shape of one value.
type Type struct {
	Kind   Kind
	Go     reflect.Type  // without the pointer
	Fields []Field       // of an object
	Not    []Unsupported // of an object
	Elem   *Type         // of a dict or a list
}

// Field is one field of an object.
type Field struct {
	Name     string
	Doc      string
	Index    []int // as in reflect.Value.FieldByIndex
	Pointer  bool
	Required bool
	Default  *string
	Limits   Limits
	Type     *Type
}

// Unsupported is a field by a name that is often used, which there is not.
type Unsupported struct {
	Name string
	Fix  string // what to do in its place
}

// Limits narrow the values of a field. For texts, lists and dicts Min and Max
// are lengths.
type Limits struct {
	Min, Max *bound
	Enum     []string
}

// The types that are read as text of their own form.
var (
	secretType   = reflect.TypeFor[core.Secret]()              //nolint:gochecknoglobals // a constant
	durationType = reflect.TypeFor[core.Duration]()            //nolint:gochecknoglobals // a constant
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]() //nolint:gochecknoglobals // a constant
)

// Of derives the shape of a struct type. It fails on what cannot be settings,
// naming the field.
func Of(t reflect.Type) (*Type, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("derive schema of %v: want a struct", t)
	}
	st, err := derive(t, nil)
	if err != nil {
		return nil, fmt.Errorf("derive schema of %v: %w", t, err)
	}
	return st, nil
}

// derive returns the shape of t. parents are the structs around it.
func derive(t reflect.Type, parents []reflect.Type) (*Type, error) {
	st := &Type{Go: t}
	switch {
	case t == secretType:
		st.Kind = Secret
		return st, nil
	case t == durationType:
		st.Kind = Duration
		return st, nil
	case reflect.PointerTo(t).Implements(textType):
		st.Kind = Custom
		return st, nil
	}
	var err error
	switch t.Kind() {
	case reflect.Struct:
		for _, p := range parents {
			if p == t {
				return nil, fmt.Errorf("%v holds itself", t)
			}
		}
		st.Kind = Object
		if st.Fields, err = fields(t, nil, append(parents, t)); err == nil {
			st.Not, err = unsupported(t, st.Fields)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%v has keys that are not strings", t)
		}
		st.Kind = Dict
		st.Elem, err = derive(t.Elem(), parents)
	case reflect.Slice:
		st.Kind = List
		st.Elem, err = derive(t.Elem(), parents)
	case reflect.String:
		st.Kind = Text
	case reflect.Bool:
		st.Kind = Boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if t.PkgPath() == "time" {
			return nil, fmt.Errorf("%v is written as a number; use core.Duration", t)
		}
		st.Kind = Integer
	case reflect.Float32, reflect.Float64:
		st.Kind = Number
	default:
		return nil, fmt.Errorf("%v cannot be a setting", t)
	}
	return st, err
}

// fields returns the fields of a struct, those of embedded structs in place.
func fields(t reflect.Type, index []int, parents []reflect.Type) ([]Field, error) {
	var fs []Field
	for sf := range t.Fields() {
		at := append(append([]int(nil), index...), sf.Index...)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" || !sf.IsExported() && !sf.Anonymous {
			continue
		}
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			inner, err := fields(sf.Type, at, append(parents, sf.Type))
			if err != nil {
				return nil, err
			}
			fs = append(fs, inner...)
			continue
		}
		f, err := field(sf, at, name, parents)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		fs = append(fs, f)
	}
	seen := make(map[string]bool, len(fs))
	for _, f := range fs {
		if seen[f.Name] {
			return nil, fmt.Errorf("two fields are called %q", f.Name)
		}
		seen[f.Name] = true
	}
	return fs, nil
}

// unsupported returns what the blank fields of a struct say there is not.
func unsupported(t reflect.Type, there []Field) ([]Unsupported, error) {
	var not []Unsupported
	for sf := range t.Fields() {
		name, ok := sf.Tag.Lookup("unsupported")
		if !ok {
			continue
		}
		fix := sf.Tag.Get("fix")
		if sf.Name != "_" || name == "" || fix == "" {
			return nil, fmt.Errorf("field %s: tag unsupported: want a name on a blank field, beside the tag fix", sf.Name)
		}
		for _, f := range there {
			if f.Name == name {
				return nil, fmt.Errorf("two fields are called %q", name)
			}
		}
		not = append(not, Unsupported{Name: name, Fix: fix})
	}
	return not, nil
}

// field reads the type and the tags of one field.
func field(sf reflect.StructField, at []int, name string, parents []reflect.Type) (Field, error) {
	f := Field{Name: name, Doc: sf.Tag.Get("doc"), Index: at}
	if f.Name == "" {
		f.Name = sf.Name
	}
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		f.Pointer = true
		t = t.Elem()
	}
	var err error
	if f.Type, err = derive(t, parents); err != nil {
		return f, err
	}
	switch req := sf.Tag.Get("required"); req {
	case "", "false":
	case "true":
		f.Required = true
	default:
		return f, fmt.Errorf("tag required is %q: want true or false", req)
	}
	if f.Limits, err = limits(f.Type, sf.Tag); err != nil {
		return f, err
	}
	if def, ok := sf.Tag.Lookup("default"); ok {
		if f.Required {
			return f, fmt.Errorf("tags required and default exclude each other")
		}
		f.Default = &def
		target := reflect.New(f.Type.Go).Elem()
		if ds := bindDefault(&f, target); len(ds) > 0 {
			return f, fmt.Errorf("tag default %q: %s", def, ds[0].Message)
		}
	}
	return f, nil
}
