// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/schemacheck"
)

// unknownField is a field that no transport has.
const unknownField = "conform_unknown_field"

// wrong is one thing that is wrong with an object under a schema.
type wrong struct {
	path string // of the field that a diagnostic has to name
	what string // is wrong, for faults
	make func(object map[string]any)
}

// shape is a JSON Schema, as far as wrong values are made of it.
type shape struct {
	raw  []byte
	root map[string]any
}

// shapeOf reads a schema. None describes an object without any field.
func shapeOf(raw []byte) shape {
	s := shape{raw: raw, root: map[string]any{}}
	if len(raw) == 0 || json.Unmarshal(raw, &s.root) != nil {
		s.root = map[string]any{"type": "object", "additionalProperties": false}
	}
	return s
}

// at follows a reference within the schema.
func (s shape) at(v any) map[string]any {
	const deepest = 16 // references may go in circles
	m, _ := v.(map[string]any)
	for range deepest {
		ref, ok := m["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#/") {
			return m
		}
		var to any = s.root
		for part := range strings.SplitSeq(ref[2:], "/") {
			object, _ := to.(map[string]any)
			to = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		m, _ = to.(map[string]any)
	}
	return m
}

// properties are the fields of an object's schema, by name.
func (s shape) properties(of map[string]any) map[string]any {
	p, _ := of["properties"].(map[string]any)
	return p
}

// closed reports whether an object's schema refuses fields that it does not name.
func closed(of map[string]any) bool {
	open, ok := of["additionalProperties"].(bool)
	if !ok {
		open, ok = of["unevaluatedProperties"].(bool)
	}
	return ok && !open
}

// unknown returns one unknown field for the object itself and for each object
// within it, as far as the schema refuses them.
func (s shape) unknown() []wrong {
	var all []wrong
	if closed(s.root) {
		all = append(all, wrong{unknownField, "is no known field", func(o map[string]any) { o[unknownField] = true }})
	}
	return append(all, s.nested()...)
}

// nested returns unknown fields of the objects right below the top.
func (s shape) nested() []wrong {
	var all []wrong
	properties := s.properties(s.root)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		is := s.at(properties[name])
		stray := map[string]any{unknownField: true}
		add := func(path string, value any) {
			all = append(all, wrong{path, "is no known field", func(o map[string]any) { o[name] = value }})
		}
		entries, items := s.at(is["additionalProperties"]), s.at(is["items"])
		switch {
		case s.properties(is) != nil && closed(is):
			all = append(all, wrong{name + "." + unknownField, "is no known field", func(o map[string]any) {
				inner, _ := o[name].(map[string]any)
				inner = maps.Clone(inner)
				if inner == nil {
					inner = map[string]any{}
				}
				inner[unknownField] = true
				o[name] = inner
			}})
		case s.properties(entries) != nil && closed(entries):
			add(name+".conform."+unknownField, map[string]any{"conform": stray})
		case s.properties(items) != nil && closed(items):
			add(name+"[0]."+unknownField, []any{stray})
		}
	}
	return all
}

// mistyped returns a value of the wrong type for each field, as far as the
// schema refuses it.
func (s shape) mistyped(given map[string]any) []wrong {
	var all []wrong
	for _, name := range slices.Sorted(maps.Keys(s.properties(s.root))) {
		for _, value := range []any{true, "conform", 1.5, []any{}, map[string]any{}} {
			object := maps.Clone(given)
			object[name] = value
			if found := s.check(object); !slices.ContainsFunc(found, func(d core.Diagnostic) bool { return d.Path == name }) {
				continue
			}
			all = append(all, wrong{name, "has the wrong type", func(o map[string]any) { o[name] = value }})
			break
		}
	}
	return all
}

// missing returns each field that has to be there, left out.
func (s shape) missing() []wrong {
	var all []wrong
	required, _ := s.root["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			all = append(all, wrong{name, "is missing", func(o map[string]any) { delete(o, name) }})
		}
	}
	return all
}

// check returns what the schema says of an object.
func (s shape) check(object map[string]any) []core.Diagnostic {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	found, err := schemacheck.Check(s.raw, raw)
	if err != nil {
		return nil
	}
	return found
}

// secretPaths returns where the schema has texts that are never shown, as lists
// of names; the entries of lists and maps are left out.
func (s shape) secretPaths() [][]string { return s.secretsBelow(s.root, nil) }

func (s shape) secretsBelow(of map[string]any, at []string) [][]string {
	const deepest = 8
	if len(at) > deepest {
		return nil
	}
	var all [][]string
	properties := s.properties(of)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		is := s.at(properties[name])
		path := append(slices.Clone(at), name)
		if hidden(is) {
			all = append(all, path)
			continue
		}
		all = append(all, s.secretsBelow(is, path)...)
	}
	return all
}

// hidden reports whether a schema says that its value is never shown.
func hidden(of map[string]any) bool {
	for _, mark := range []string{secretMark, "x-longshore-secret"} {
		if is, _ := of[mark].(bool); is {
			return true
		}
	}
	return false
}

// apply makes an object wrong in all these ways.
func apply(given map[string]any, all ...wrong) []byte {
	object := maps.Clone(given)
	for _, w := range all {
		w.make(object)
	}
	raw, _ := json.Marshal(object) // it was JSON before
	return raw
}

// names reports whether a diagnostic's path is that of what is wrong, or lies
// within it.
func (w wrong) names(path string) bool {
	rest, ok := strings.CutPrefix(path, w.path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
