// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The map names every case once, and only tests that are there.
func TestMap(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for letter, most := range map[string]int{"Z": 14, "F": 8, "S": 6, "L": 14, "E": 16, "M": 14, "P": 18} {
		for n := 1; n <= most; n++ {
			if row := fmt.Sprintf("\n| %s-%02d ", letter, n); strings.Count(string(text), row) != 1 {
				t.Errorf("%q stands there %d times, want once", row[1:], strings.Count(string(text), row))
			}
		}
	}
	there := testsOf(t, filepath.Join("..", ".."))
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		if !there[m[1]] && m[1] != "TestMain" {
			t.Errorf("there is no test %s", m[1])
		}
	}
}

// testsOf returns the names of all functions in tests below a folder.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir // of tools
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for l := range bytes.Lines(text) {
			if rest, ok := bytes.CutPrefix(l, []byte("func ")); ok {
				name, _, _ := bytes.Cut(rest, []byte("("))
				out[string(name)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
