// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Record checks a table of a record in docs/adr, which begins with heading: each of its
// rows, of which there are least, names in its third column tests that are there, below
// the folder of the test that calls it, which is two below the repository. A folder in
// backquotes goes for the tests behind it, up to a semicolon.
func Record(t *testing.T, file, heading string, least int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "adr", file))
	if err != nil {
		t.Fatal(err)
	}
	there := testsByFolder(t)
	_, table, _ := strings.Cut(string(text), heading)
	words := regexp.MustCompile("`(internal/\\w+|(?:Test|Fuzz)\\w+)`|;")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if strings.HasPrefix(line, "## ") {
			break
		}
		if len(cells) != 5 || strings.HasPrefix(line, "|---") || !strings.HasPrefix(line, "| ") {
			continue
		}
		rows++
		folder, tests := ".", 0
		for _, m := range words.FindAllStringSubmatch(cells[3], -1) {
			switch {
			case m[0] == ";":
				folder = "."
			case strings.HasPrefix(m[1], "internal/"):
				folder = m[1]
			case !there[folder+" "+m[1]]:
				t.Errorf("there is no test %s in %s", m[1], folder)
			default:
				tests++
			}
		}
		if tests == 0 {
			t.Errorf("no test is named in %s", line)
		}
	}
	if rows < least {
		t.Errorf("the table has %d rows", rows)
	}
}

// testsByFolder are the tests below this folder, as "folder name".
func testsByFolder(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[filepath.ToSlash(filepath.Dir(path))+" "+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
