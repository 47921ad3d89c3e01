// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// uncarried complains of a T that no codec can read or write as a whole: it, or
// something that it is made of, has no form in JSON. A T that fails for some
// values is left to the codec, and every T to codecs that are not built in.
func uncarried[T any](cs *codecs) *complaint {
	var zero T
	if _, ok := any(zero).(proto.Message); ok || isRaw[T]() || !cs.empty() {
		return nil
	}
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[proto.Message]()) {
		return &complaint{fmt.Sprintf("the type %v is a protobuf message without its pointer", t), fmt.Sprintf("use *%v", t)}
	}
	field, what := formless{}.in(t, "")
	switch {
	case what == nil:
		return nil
	case field == "":
		return &complaint{
			fmt.Sprintf("the type %v cannot be JSON", t),
			"use a struct, a protobuf message, []byte or core.Message",
		}
	}
	return &complaint{
		fmt.Sprintf("the type %v cannot be JSON: its field %s is a %v", t, field, what),
		"give the field the tag `json:\"-\"`, or its type MarshalJSON and UnmarshalJSON",
	}
}

// unread complains of a T that can be written and not be read: an interface with
// methods says nothing of what to make.
func unread[T any](cs *codecs) *complaint {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Interface || t.NumMethod() == 0 || !cs.empty() {
		return nil
	}
	return &complaint{
		fmt.Sprintf("the type %v is an interface, of which no message can be made", t), "use a type that implements it",
	}
}

// coders are the interfaces that give a type a form of its own in JSON.
var coders = [...]reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// formless looks for types without a form in JSON and holds those that it has
// looked at: a type may be made of itself.
type formless map[reflect.Type]bool

// in returns the first type without a form that t is made of, and the path of
// the field that has it, which is under path; nil where there is none.
func (seen formless) in(t reflect.Type, path string) (field string, what reflect.Type) {
	if seen[t] || ownForm(t) {
		return "", nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return path, t
	case reflect.Map:
		if !keyForm(t.Key()) {
			return path, t
		}
		return seen.in(t.Elem(), path)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return seen.in(t.Elem(), path)
	case reflect.Struct:
		for _, f := range jsonFields(t) {
			at := f.path
			if path != "" {
				at = path + "." + at
			}
			if field, what = seen.in(f.typ, at); what != nil {
				return field, what
			}
		}
	}
	return "", nil
}

// ownForm reports whether t says itself how it is JSON.
func ownForm(t reflect.Type) bool {
	for _, c := range coders {
		if t.Implements(c) || reflect.PointerTo(t).Implements(c) {
			return true
		}
	}
	return false
}

// keyForm reports whether t can be the key of an object.
func keyForm(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return ownForm(t)
}
