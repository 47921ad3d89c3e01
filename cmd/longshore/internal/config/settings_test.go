// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettings(t *testing.T) {
	want := map[string]any{"dir": "{dir}/q", "secret": "hush-hush", "deep": map[string]any{"list": []any{int64(1), "two"}}}
	for name, text := range map[string]string{
		"YAML": "dir: '{dir}/q'\nsecret: ${env:LONGSHORE_TEST_SECRET}\ndeep:\n  list: [1, two]\n",
		"JSON": "{\n\t\"dir\": \"{dir}/q\",\n\t\"secret\": \"${env:LONGSHORE_TEST_SECRET}\",\n\t\"deep\": {\"list\": [1, \"two\"]}\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "settings")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := LoadSettings(path, environment)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, s.Values); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			at := map[string]string{"YAML": ":4:13: ", "JSON": ":4:23: "}[name]
			if got, want := s.Problem("deep.list[1]", "is two", "write 2"), path+at+"deep.list[1]: is two; write 2"; got != want {
				t.Errorf("got problem %q, want %q", got, want)
			}
		})
	}
	for _, empty := range []string{"{}", "null"} {
		if s, err := ParseSettings("x", []byte(empty), environment); err != nil || s.Values == nil || len(s.Values) != 0 {
			t.Errorf("%s: got %v, %v; want no settings", empty, s, err)
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"empty":          {"", "x.yaml:1:1: the file is empty; write fields, or {} for none"},
		"a list":         {"[a]", "x.yaml:1:1: is a list; write fields, or {} for none"},
		"twice":          {"a: 1\na: 2\n", "x.yaml:2:1: a: is given twice, first on line 1; remove one, or rename it"},
		"two documents":  {"a: 1\n---\nb: 1\n", "a second document begins; put them into one"},
		"no YAML":        {"a: [1\n", "x.yaml:1:1: did not find expected ',' or ']'; correct the YAML here or on the lines before"},
		"tabs":           {"a: 1\nb:\n\tc: 1\n", "x.yaml:3:1: found character that cannot start any token; indent with spaces: YAML takes no tabs there"},
		"star":           {"a: 1\nbind: *:5600\n", `x.yaml:2:1: did not find expected alphabetic or numeric character; put a text that begins with * or & in quotes, as in "*:5555"`},
		"star in a map":  {"a: {b: 1, bind: *:5600}\n", `put a text that begins with * or & in quotes`},
		"missing":        {"a: ${env:LONGSHORE_TEST_NONE}", "x.yaml:1:4: a: the environment variable LONGSHORE_TEST_NONE is not set; set it"},
		"bare {dir}":     {"dir: {dir}/q", "x.yaml:1:"},
		"a whole number": {"7", "x.yaml:1:1: is the number 7; write fields, or {} for none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSettings("x.yaml", []byte(tt.text), environment)
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an *Error that says %q", err, tt.want)
			}
		})
	}
	if _, err := LoadSettings(filepath.Join(t.TempDir(), "none.yaml"), environment); err == nil || !strings.HasPrefix(err.Error(), "read settings file: open ") {
		t.Errorf("got %v, want that there is no such file", err)
	}
}
