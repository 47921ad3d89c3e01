// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/longshore-go/longshore/internal/spelling"
)

// Limits of a file, so that aliases cannot make a small one endless.
const (
	maxNodes = 100_000
	maxDepth = 64
)

// decoder fills structs from nodes and collects what is wrong.
type decoder struct {
	lookup    func(name string) (string, bool) // of environment variables
	positions map[string]Position
	problems  []Problem
	visited   int
	depth     int
}

// fail notes a problem at n.
func (d *decoder) fail(n *yaml.Node, path, fix, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		Position: Position{Line: max(n.Line, 1), Column: max(n.Column, 1)},
		Path:     path,
		Message:  fmt.Sprintf(format, args...),
		Fix:      fix,
	})
}

// enter follows aliases and guards the limits; ok is false where one is
// reached. The caller calls leave when ok.
func (d *decoder) enter(n *yaml.Node) (_ *yaml.Node, ok bool) {
	d.visited++
	if d.visited == maxNodes || d.depth == maxDepth {
		d.fail(n, "", "check its aliases for one that holds itself", "the file is too large: more than %d values, or more than %d within one another", maxNodes, maxDepth)
	}
	if d.visited >= maxNodes || d.depth >= maxDepth {
		return n, false
	}
	d.depth++
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n, true
}

func (d *decoder) leave() { d.depth-- }

// value decodes n into v, which f describes.
func (d *decoder) value(n *yaml.Node, path string, v reflect.Value, f field) {
	if _, ok := d.positions[path]; !ok {
		d.positions[path] = Position{Line: n.Line, Column: n.Column}
	}
	n, ok := d.enter(n)
	if !ok {
		return
	}
	defer d.leave()
	if isNull(n) && f.typ != reflect.TypeFor[map[string]any]() {
		d.fail(n, path, "give it one, or remove it", "has no value")
		return
	}
	switch {
	case f.typ == reflect.TypeFor[map[string]any]():
		d.free(n, path, v)
	case f.typ == reflect.TypeFor[Duration]():
		d.duration(n, path, v, f)
	case f.typ.Kind() == reflect.Pointer:
		v.Set(reflect.New(f.typ.Elem()))
		f.typ = f.typ.Elem()
		d.depth-- // the same node once more
		d.value(n, path, v.Elem(), f)
		d.depth++
		if f.typ.Kind() == reflect.Struct && n.Kind != yaml.MappingNode {
			v.SetZero() // it is told what it is; nothing more is to be said of its fields
		}
	case f.typ.Kind() == reflect.Struct:
		d.structure(n, path, v)
	case f.typ.Kind() == reflect.Map:
		d.named(n, path, v, f)
	case f.typ.Kind() == reflect.Slice:
		d.list(n, path, v, f)
	default:
		d.scalar(n, path, v, f)
	}
}

// pairs calls each with the keys and values of a mapping. It refuses keys that
// are no text, keys given twice, and merge keys.
func (d *decoder) pairs(n *yaml.Node, path, want string, each func(key, value *yaml.Node, path string)) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, want, "is %s", kindOf(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		switch {
		case key.ShortTag() == "!!merge":
			d.fail(key, at, "write the fields out, or use an alias for a whole value", "merge keys are not part of the form")
			continue
		case key.Kind != yaml.ScalarNode || isNull(key):
			d.fail(key, path, "use a text as key", "a key is %s", kindOf(key))
			continue
		case seen[key.Value] != 0:
			d.fail(key, at, "remove one, or rename it", "is given twice, first on line %d", seen[key.Value])
			continue
		}
		seen[key.Value] = key.Line
		d.positions[at] = Position{Line: key.Line, Column: key.Column}
		each(key, value, at)
	}
}

// structure decodes a mapping with known fields.
func (d *decoder) structure(n *yaml.Node, path string, v reflect.Value) {
	fields := fieldsOf(v.Type())
	given := map[string]bool{}
	d.pairs(n, path, "write fields: "+strings.Join(names(fields), ", "), func(key, value *yaml.Node, at string) {
		for _, f := range fields {
			if f.name == key.Value {
				given[f.name] = true
				d.value(value, at, v.FieldByIndex(f.index), f)
				return
			}
		}
		fix := "remove it; the fields here are " + strings.Join(names(fields), ", ")
		if slices.Contains(names(fields), "settings") {
			fix = "remove it, or put it under settings if it is the transport's; the fields here are " + strings.Join(names(fields), ", ")
		}
		if s := spelling.Nearest(key.Value, names(fields)); s != "" {
			fix = "did you mean " + s + "?"
		}
		d.fail(key, at, fix, "unknown field")
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, f := range fields {
		if f.required && !given[f.name] {
			d.fail(n, join(path, f.name), "add it: "+lowerFirst(f.doc), "is missing")
		}
	}
}

// named decodes a mapping from names to structs or texts.
func (d *decoder) named(n *yaml.Node, path string, v reflect.Value, f field) {
	v.Set(reflect.MakeMap(f.typ))
	each := "write name: {...} for each"
	if f.typ.Elem().Kind() == reflect.String {
		each = "write name: value for each"
	}
	d.pairs(n, path, each, func(key, value *yaml.Node, at string) {
		if !regexp.MustCompile(f.like).MatchString(key.Value) {
			d.fail(key, at, "use "+f.as, "the name %q cannot be used", key.Value)
			return
		}
		e := reflect.New(f.typ.Elem()).Elem()
		d.value(value, at, e, f.element())
		if e.Kind() != reflect.Pointer || !e.IsNil() {
			v.SetMapIndex(reflect.ValueOf(key.Value), e)
		}
	})
}

// list decodes a sequence.
func (d *decoder) list(n *yaml.Node, path string, v reflect.Value, f field) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "write a list: [...], or a line with - for each", "is %s", kindOf(n))
		return
	}
	if f.required && len(n.Content) == 0 {
		d.fail(n, path, "add one", "is empty")
		return
	}
	out := reflect.MakeSlice(f.typ, len(n.Content), len(n.Content))
	for i, c := range n.Content {
		d.value(c, path+"["+strconv.Itoa(i)+"]", out.Index(i), f.element())
	}
	v.Set(out)
}

// join appends a step to a field path.
func join(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}

// isNull reports whether n is written as nothing, null or ~.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kindOf says for people what n is.
func kindOf(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return "a mapping"
	}
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return "the truth value " + n.Value
	}
	return "a text"
}

// lowerFirst makes a sentence fit behind a colon.
func lowerFirst(s string) string {
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}
