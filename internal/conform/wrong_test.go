// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"slices"
	"testing"

	"github.com/longshore-go/longshore/core"
)

const wrongSchema = `{
	"type": "object", "additionalProperties": false, "required": ["url"],
	"properties": {
		"url": {"type": "string"},
		"any": {},
		"count": {"type": "integer"},
		"tls": {"$ref": "#/$defs/tls"},
		"topics": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}}}},
		"queues": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}}}},
		"open": {"type": "object", "properties": {"name": {"type": "string"}}}
	},
	"$defs": {"tls": {"type": "object", "additionalProperties": false, "properties": {
		"ca": {"type": "string"}, "key": {"type": "string", "writeOnly": true}, "pin": {"type": "string", "x-longshore-secret": true}}}}
}`

func TestWrong(t *testing.T) {
	s := shapeOf([]byte(wrongSchema))
	given := map[string]any{"url": "here", "tls": map[string]any{"ca": "file"}}
	paths := func(ws []wrong) []string {
		var all []string
		for _, w := range ws {
			all = append(all, w.path)
			// The schema has to refuse each of them by its path.
			object := objectOf(apply(given, w))
			if !slices.ContainsFunc(s.check(object), func(d core.Diagnostic) bool { return w.names(d.Path) }) {
				t.Errorf("%s %s: the schema says %+v", w.path, w.what, s.check(object))
			}
		}
		return all
	}
	for _, tt := range []struct {
		name string
		got  []wrong
		want []string
	}{
		{"unknown", s.unknown(), []string{
			"conform_unknown_field", "queues.conform.conform_unknown_field", "tls.conform_unknown_field", "topics[0].conform_unknown_field",
		}},
		{"mistyped", s.mistyped(given), []string{"count", "open", "queues", "tls", "topics", "url"}},
		{"missing", s.missing(), []string{"url"}},
	} {
		if got := paths(tt.got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if len(given) != 2 || len(given["tls"].(map[string]any)) != 1 {
		t.Errorf("the settings given were changed: %v", given)
	}
	if got := s.secretPaths(); len(got) != 2 || !slices.Equal(got[0], []string{"tls", "key"}) || !slices.Equal(got[1], []string{"tls", "pin"}) {
		t.Errorf("secrets at %q", got)
	}
	if s := shapeOf(nil); len(s.unknown()) != 1 || len(s.mistyped(nil))+len(s.missing()) != 0 {
		t.Errorf("no schema: %v", s)
	}
}
