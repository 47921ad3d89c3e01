// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/longshore-go/longshore/internal/golden"
)

// compiled returns the schema, ready to validate.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The schema that is checked in is the one that the structs give.
func TestSchemaIsFresh(t *testing.T) {
	golden.Compare(t, "../../config.schema.json", Schema())
}

// Every service file of this repository fits the schema and loads.
func TestServiceFilesFitTheSchema(t *testing.T) {
	schema := compiled(t)
	files := serviceFiles(t)
	if len(files) < 2 {
		t.Fatalf("got %v, want at least the two of testdata", files)
	}
	for _, path := range files {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(path, text, environment); err != nil {
				t.Error(err)
			}
			var v any
			if err := yaml.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(asJSON(v)); err != nil {
				t.Error(err)
			}
		})
	}
}

// asJSON returns what YAML has decoded with texts as keys, which is how editors
// read a number there.
func asJSON(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = asJSON(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = asJSON(v[k])
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[fmt.Sprint(k)] = asJSON(e)
		}
		return out
	}
	return v
}

// serviceFiles lists the service files of testdata, examples and documentation.
func serviceFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"examples/*/*.yaml", "docs/settlement/*.yaml", "cmd/longshore/testdata/*/*.yaml"} {
		more, err := filepath.Glob(filepath.Join("../../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	return files
}

// What the schema refuses is what the loader refuses, but for what one field
// says of another, for repeated keys, aliases and the environment.
func TestSchemaRefusesBadFiles(t *testing.T) {
	schema := compiled(t)
	loaderAlone := []string{
		"aliases", "backoff", "durations", "endpoint-twice", "environment", "exec-misuse", "merge", "missing-endpoint",
		"settings-values", "syntax", "tabs", "two-documents", "two-stdio",
	}
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		name := filepath.Base(path[:len(path)-len(".yaml")])
		if slices.Contains(loaderAlone, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := yaml.Unmarshal(text, &v); err != nil {
				return // refused before any schema
			}
			if err := schema.Validate(asJSON(v)); err == nil {
				t.Errorf("the schema takes %s, which the loader refuses", path)
			}
		})
	}
}
