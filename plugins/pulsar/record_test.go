// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of ADR 0120 names tests that are there, at least one for each promise.
func TestRecordOfPromises(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "adr", "0120-a-client-of-pulsars-protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := testsByFolder(t)
	_, table, _ := strings.Cut(string(text), "| what a client of ours keeps |")
	words := regexp.MustCompile("`(internal/\\w+|(?:Test|Fuzz)\\w+)`|;")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if strings.HasPrefix(line, "## ") {
			break
		}
		if len(cells) != 5 || strings.HasPrefix(line, "|---") {
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
	if rows < 20 {
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
