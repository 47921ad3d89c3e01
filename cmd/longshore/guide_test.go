// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The guides of transports name every setting and option, with its default.
func TestGuidesHaveEverySetting(t *testing.T) {
	for _, tt := range []struct {
		transport string
		least     int // fields that there are
	}{{"file", 15}, {"zmq", 12}, {"mqtt", 30}, {"pulsar", 30}} {
		t.Run(tt.transport, func(t *testing.T) {
			page := "docs/" + tt.transport + ".md"
			guide, err := os.ReadFile("../../" + page)
			if err != nil {
				t.Fatal(err)
			}
			r := finish(t, command(t, "plugin", "describe", tt.transport, "-o", "json"))
			var told struct {
				Schemas struct{ Settings, Subscription property }
			}
			if err := json.Unmarshal([]byte(r.out), &told); err != nil || r.status != 0 {
				t.Fatalf("got status %d, %v:\n%s", r.status, err, r.err)
			}
			fields := told.Schemas.Settings.fields("")
			fields = append(fields, told.Schemas.Subscription.fields("")...)
			if len(fields) < tt.least {
				t.Fatalf("got %v, want the settings of the transport", fields)
			}
			for _, f := range fields {
				row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(f.name) + "` \\|.*$").FindString(string(guide))
				if row == "" {
					t.Errorf("%s has no row for %s", page, f.name)
				}
				if f.fallback != "" && !strings.Contains(row, "| `"+f.fallback+"` |") {
					t.Errorf("the default of %s is %s, %s says %q", f.name, f.fallback, page, row)
				}
			}
		})
	}
}

// The service files of the guides are ones that run.
func TestGuidesHaveServiceFiles(t *testing.T) {
	for _, page := range []string{"quickstart.md", "file.md", "zmq.md", "mqtt.md", "pulsar.md"} {
		guide, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no service file", page)
		}
		for _, b := range blocks {
			if r := finish(t, command(t, "explain", service(t, b[1]))); r.status != 0 {
				t.Errorf("%s: got status %d:\n%s\n%s", page, r.status, b[1], r.err)
			}
		}
	}
}

// What the pages link to is there.
func TestPagesLinkToWhatIsThere(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("got %v, %v; want the pages", pages, err)
	}
	fences := regexp.MustCompile("(?s)```.*?```")
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllSubmatch(fences.ReplaceAll(text, nil), -1) {
			path, anchor, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(path, "://") {
				continue
			}
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(t, to), anchor) {
				t.Errorf("%s links to %s, which is no heading", page, m[1])
			}
		}
	}
}

// anchors lists what can be linked to within a page.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
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
