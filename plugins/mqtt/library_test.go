// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// files calls f for each file below this folder whose name ends so.
func files(t *testing.T, suffix string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Of the library only its control packets are used, behind the guard (ADR 0110).
func TestOnlyControlPacketsAreTheLibrarys(t *testing.T) {
	const module = "github.com/eclipse/paho.golang/"
	hot := map[string]bool{"Publish": true, "Puback": true, "Pubrec": true, "Pubrel": true, "Pubcomp": true, "ReadPacket": true, "Connect": true}
	found := false
	files(t, ".go", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			name := strings.Trim(i.Path.Value, `"`)
			if !strings.HasPrefix(name, module) {
				continue
			}
			found = true
			if name != module+"packets" || filepath.Dir(path) != filepath.Join("internal", "packet") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "packets" && hot[s.Sel.Name] {
					t.Errorf("%s uses packets.%s", path, s.Sel.Name)
				}
			}
			return true
		})
	})
	if !found {
		t.Error("the library is not used at all")
	}
}

// The record of what is done about the library's client names only tests that are
// there, in the packages that it says.
func TestRecordOfTheLibrarysClient(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "adr", "0110-packets-of-the-library-a-session-of-our-own.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{} // by folder and name
	declared := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	files(t, "_test.go", func(path string) {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[filepath.ToSlash(filepath.Dir(path))+" "+string(m[1])] = true
		}
	})
	_, table, _ := strings.Cut(string(text), "| fault of the library's client")
	words := regexp.MustCompile("`(internal/\\w+|(?:Test|Fuzz)\\w+)`|;")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
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
	if rows < 15 {
		t.Errorf("the table has %d rows", rows)
	}
}
