// SPDX-License-Identifier: Apache-2.0

package describe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// setting is one line of a list of settings.
type setting struct {
	name     string // with the names around it: tls.ca_file, topics[].name
	kind     string
	required bool
	bounds   string // "" = none
	fallback string // "" = none
	doc      string
}

// shape is what is read of a JSON Schema.
type shape struct {
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []any           `json:"enum"`
	Pattern     string          `json:"pattern"`
	Secret      bool            `json:"x-longshore-secret"`
	Minimum     *json.Number    `json:"minimum"`
	Maximum     *json.Number    `json:"maximum"`
	MinTime     string          `json:"x-longshore-min"`
	MaxTime     string          `json:"x-longshore-max"`
	MinLength   *json.Number    `json:"minLength"`
	MaxLength   *json.Number    `json:"maxLength"`
	MinItems    *json.Number    `json:"minItems"`
	MaxItems    *json.Number    `json:"maxItems"`
	Properties  json.RawMessage `json:"properties"`
	Required    []string        `json:"required"`
	Items       *shape          `json:"items"`
	Additional  json.RawMessage `json:"additionalProperties"`
}

// settings lists what a schema describes, in its order. What is no schema lists
// nothing.
func settings(text json.RawMessage) []setting {
	var s shape
	if json.Unmarshal(text, &s) != nil {
		return nil
	}
	return s.settings("")
}

func (s *shape) settings(prefix string) []setting {
	required := map[string]bool{}
	for _, r := range s.Required {
		required[r] = true
	}
	var list []setting
	for _, name := range orderedKeys(s.Properties) {
		var all map[string]shape
		if json.Unmarshal(s.Properties, &all) != nil {
			return nil
		}
		p := all[name]
		list = append(list, setting{
			name: prefix + name, kind: p.kind(), bounds: p.bounds(), required: required[name], fallback: p.fallback(),
			doc: p.Description,
		})
		list = append(list, p.within(prefix+name)...)
	}
	return list
}

// within lists what is inside a setting.
func (s *shape) within(name string) []setting {
	switch {
	case s.Properties != nil:
		return s.settings(name + ".")
	case s.Items != nil:
		return s.Items.within(name + "[]")
	}
	var of shape
	if bytes.HasPrefix(bytes.TrimSpace(s.Additional), []byte("{")) && json.Unmarshal(s.Additional, &of) == nil {
		return of.within(name + ".<name>")
	}
	return nil
}

// kind says what a setting takes.
func (s *shape) kind() string {
	if len(s.Enum) > 0 {
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprint(e)
		}
		return strings.Join(words, " | ")
	}
	kind := fmt.Sprint(s.Type)
	switch {
	case s.Secret:
		return "secret"
	case kind == "array" && s.Items != nil:
		return "list of " + s.Items.kind()
	case kind == "boolean":
		return "true | false"
	case kind == "string" && strings.Contains(s.Pattern, "(ns|us|"):
		return "duration"
	case kind == "string":
		return "text"
	case kind == "object" && s.Properties == nil:
		return "map"
	}
	return kind
}

// bounds says what the least and the most is, of texts and lists in their size.
func (s *shape) bounds() string {
	var parts []string
	for _, b := range []struct {
		word, time, unit string
		n                *json.Number
	}{
		{"min", s.MinTime, "", s.Minimum}, {"max", s.MaxTime, "", s.Maximum},
		{"min", "", " characters", s.MinLength}, {"max", "", " characters", s.MaxLength},
		{"min", "", " entries", s.MinItems}, {"max", "", " entries", s.MaxItems},
	} {
		switch {
		case b.time != "":
			parts = append(parts, b.word+" "+b.time)
		case b.n != nil:
			parts = append(parts, b.word+" "+b.n.String()+b.unit)
		}
	}
	return strings.Join(parts, ", ")
}

// fallback is the default as one would write it.
func (s *shape) fallback() string {
	var text string
	if json.Unmarshal(s.Default, &text) == nil {
		return text
	}
	return string(s.Default)
}

// orderedKeys returns the keys of a JSON object in its order.
func orderedKeys(object json.RawMessage) []string {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var skip json.RawMessage
		if err != nil || !ok || dec.Decode(&skip) != nil {
			return nil
		}
		keys = append(keys, name)
	}
	return keys
}
