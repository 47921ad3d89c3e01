// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The guide of stream files names every setting and option, with its default.
func TestFileGuideHasEverySetting(t *testing.T) {
	guide, err := os.ReadFile("../../docs/file.md")
	if err != nil {
		t.Fatal(err)
	}
	r := finish(t, command(t, "plugin", "describe", "file", "-o", "json"))
	var told struct {
		Schemas struct{ Settings, Subscription property }
	}
	if err := json.Unmarshal([]byte(r.out), &told); err != nil || r.status != 0 {
		t.Fatalf("got status %d, %v:\n%s", r.status, err, r.err)
	}
	fields := told.Schemas.Settings.fields("")
	fields = append(fields, told.Schemas.Subscription.fields("")...)
	if len(fields) < 15 {
		t.Fatalf("got %v, want the settings of the transport", fields)
	}
	for _, f := range fields {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(f.name) + "` \\|.*$").FindString(string(guide))
		if row == "" {
			t.Errorf("docs/file.md has no row for %s", f.name)
		}
		if f.fallback != "" && !strings.Contains(row, "| `"+f.fallback+"` |") {
			t.Errorf("the default of %s is %s, docs/file.md says %q", f.name, f.fallback, row)
		}
	}
}

// property is a part of a JSON Schema.
type property struct {
	Default    any
	Properties map[string]property
}

// field is a field of a schema by its path.
type field struct{ name, fallback string }

// fields lists the fields below a property that have no fields of their own.
func (p property) fields(path string) []field {
	var out []field
	for name, below := range p.Properties {
		name = strings.TrimPrefix(path+"."+name, ".")
		if below.Properties != nil {
			out = append(out, below.fields(name)...)
			continue
		}
		f := field{name: name}
		switch v := below.Default.(type) {
		case nil:
		case float64:
			f.fallback = fmt.Sprintf("%.0f", v)
		default:
			f.fallback = fmt.Sprint(v)
		}
		out = append(out, f)
	}
	return out
}
