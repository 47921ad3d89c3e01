// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// GuideTexts checks that the texts in the last table of a guide, "What messages
// mean", are those that people see: each stands in the sources below the roots,
// or is one of elsewhere.
func GuideTexts(t testing.TB, page string, elsewhere []string, roots ...string) {
	t.Helper()
	guide, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(guide), "\n## What messages mean\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var sources strings.Builder
	for _, root := range roots {
		err = errors.Join(err, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			sources.Write(text)
			return err
		}))
	}
	if err != nil || !found {
		t.Fatalf("%v, found: %t", err, found)
	}
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			if text := m[1]; !strings.Contains(sources.String(), text) && !slices.Contains(elsewhere, text) {
				t.Errorf("nothing says %q", text)
			}
		}
	}
}
