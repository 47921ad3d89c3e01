// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore/pluginapi"
)

// encode returns settings or options as one JSON object, placeholders left in.
func encode(field string, v any) ([]byte, error) {
	var raw []byte
	switch v := v.(type) {
	case json.RawMessage:
		raw = v
	case []byte:
		raw = v
	default:
		out, err := pluginapi.EncodeSettings(v)
		if err != nil {
			return nil, &SubjectError{Field: field, Reason: err.Error(), Fix: "give a settings struct, a map, or JSON"}
		}
		return out, nil
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, &SubjectError{Field: field, Reason: err.Error(), Fix: "give one JSON object"}
	}
	return raw, nil
}

// expand fills the placeholders of every string of a JSON value in.
func (p Place) expand(raw []byte, word string) ([]byte, error) {
	if !bytes.Contains(raw, []byte(CaseWord)) && !bytes.Contains(raw, []byte(DirWord)) {
		return raw, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("fill placeholders in: %w", err)
	}
	return json.Marshal(walk(v, p.filler(word)))
}

// filler replaces the placeholders of one text.
func (p Place) filler(word string) func(string) string {
	return strings.NewReplacer(CaseWord, word, DirWord, p.Dir).Replace
}

// walk applies fill to every string of a JSON value but keys.
func walk(v any, fill func(string) string) any {
	switch v := v.(type) {
	case string:
		return fill(v)
	case []any:
		for i := range v {
			v[i] = walk(v[i], fill)
		}
	case map[string]any:
		for k := range v {
			v[k] = walk(v[k], fill)
		}
	}
	return v
}
