// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// maxDepth bounds how deep settings may nest; foreign bytes must not decide
// how deep the stack grows.
const maxDepth = 64

// parse reads one JSON value into nil, bool, json.Number, string, []any and
// map[string]any. Unlike encoding/json it refuses doubled keys, bytes that are
// no UTF-8 and anything behind the value.
func parse(raw []byte) (any, []core.Diagnostic) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	if !utf8.Valid(raw) {
		return nil, whole("is not UTF-8", "write it in UTF-8")
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, err := p.value("", 0)
	if err == nil {
		if _, more := p.dec.Token(); more != io.EOF {
			err = fmt.Errorf("something follows the value")
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, whole("cannot be read as JSON: it ends too early", "give one JSON object")
	case err != nil:
		return nil, whole("cannot be read as JSON: "+err.Error(), "give one JSON object")
	}
	return v, p.found
}

// CheckObject returns what is wrong with raw as one JSON object of any fields.
func CheckObject(raw []byte) []core.Diagnostic {
	v, found := parse(raw)
	if _, ok := v.(map[string]any); !ok && len(found) == 0 {
		return whole("is no object", "give one JSON object")
	}
	return found
}

// whole is a diagnostic about all of it.
func whole(message, fix string) []core.Diagnostic {
	return []core.Diagnostic{{Message: message, Fix: fix}}
}

type parser struct {
	dec   *json.Decoder
	found []core.Diagnostic
}

func (p *parser) value(path string, depth int) (any, error) {
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	d, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("more than %d levels deep", maxDepth)
	}
	if d == '[' {
		list := []any{}
		for p.dec.More() {
			v, err := p.value(at(path, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = p.dec.Token()
		return list, err
	}
	object := map[string]any{}
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		v, err := p.value(join(path, name), depth+1)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			p.found = append(p.found, core.Diagnostic{
				Path: join(path, name), Message: "is given twice", Fix: "give it once",
			})
		}
		object[name] = v
	}
	_, err = p.dec.Token()
	return object, err
}

// join appends a field's name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// at appends an index to a path.
func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
