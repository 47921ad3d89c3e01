// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// uncarried complains of a T that no codec can read or write, whatever its value
// is. A T that fails for some values is left to the codec.
func uncarried[T any]() *complaint {
	var zero T
	if _, ok := any(zero).(proto.Message); ok || isRaw[T]() {
		return nil
	}
	t := reflect.TypeFor[T]()
	if !never(t) {
		return nil
	}
	return &complaint{
		fmt.Sprintf("the type %v cannot be JSON", t),
		"use a struct, a protobuf message, []byte or core.Message",
	}
}

// coders are the interfaces that give a type a form of its own in JSON.
var coders = [...]reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// never reports whether t, or what it is made of, has no form in JSON.
func never(t reflect.Type) bool {
	for range 16 { // a type may be made of itself
		for _, c := range coders {
			if t.Implements(c) || reflect.PointerTo(t).Implements(c) {
				return false
			}
		}
		switch t.Kind() {
		case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
			return true
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return false
		}
	}
	return false
}
