// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Encode returns v, a tagged struct or a map, as one JSON object. It is the one
// place where a secret is written out. Zero fields of structs are left out, so
// that their defaults apply.
func Encode(v any) ([]byte, error) {
	out, err := encode("", reflect.ValueOf(v), 0)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return []byte("{}"), nil
	}
	if _, ok := out.(map[string]any); !ok {
		return nil, fmt.Errorf("encode settings of type %T: give a struct or a map", v)
	}
	return json.Marshal(out)
}

// encode returns what json.Marshal writes as v stands in settings.
func encode(path string, v reflect.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("encode settings: %s: more than %d levels deep; does it hold itself?", path, maxDepth)
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil, nil
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, nil
	}
	if out, ok, err := encodeText(v); ok {
		if err != nil {
			return nil, fmt.Errorf("encode settings: %s: %w", path, err)
		}
		return out, nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return encodeStruct(path, v, depth)
	case reflect.Map:
		return encodeMap(path, v, depth)
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			inner, err := encode(at(path, i), v.Index(i), depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = inner
		}
		return list, nil
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Interface(), nil
	default:
		return nil, fmt.Errorf("encode settings: %s: %v cannot be a setting", path, v.Type())
	}
}

// encodeText returns the text of types that have a form of their own.
func encodeText(v reflect.Value) (out any, ok bool, err error) {
	switch x := v.Interface().(type) {
	case core.Secret:
		return x.Reveal(), true, nil
	case core.Duration:
		return x.String(), true, nil
	case time.Duration:
		return x.String(), true, nil
	case json.Number:
		return x, true, nil
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		return string(b), true, err
	}
	return nil, false, nil
}

func encodeStruct(path string, v reflect.Value, depth int) (any, error) {
	fs, err := fields(v.Type(), nil, []reflect.Type{v.Type()})
	if err != nil {
		return nil, fmt.Errorf("encode settings: %s: %w", path, err)
	}
	out := make(map[string]any, len(fs))
	for _, f := range fs {
		inner := v.FieldByIndex(f.Index)
		if inner.IsZero() {
			continue
		}
		if out[f.Name], err = encode(join(path, f.Name), inner, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encodeMap(path string, v reflect.Value, depth int) (any, error) {
	if v.Type().Key().Kind() != reflect.String && v.Type().Key().Kind() != reflect.Interface {
		return nil, fmt.Errorf("encode settings: %s: %v has keys that are not strings", path, v.Type())
	}
	out := make(map[string]any, v.Len())
	for key, inner := range v.Seq2() {
		for key.Kind() == reflect.Interface {
			key = key.Elem()
		}
		if key.Kind() != reflect.String {
			return nil, fmt.Errorf("encode settings: %s: a key is not a string", path)
		}
		enc, err := encode(join(path, key.String()), inner, depth+1)
		if err != nil {
			return nil, err
		}
		out[key.String()] = enc
	}
	if len(out) != v.Len() {
		return nil, fmt.Errorf("encode settings: %s: a key is given twice: %v", path, slices.Sorted(maps.Keys(out)))
	}
	return out, nil
}
