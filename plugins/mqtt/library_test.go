// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/servicetest"
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
	servicetest.Record(t, "0110-packets-of-the-library-a-session-of-our-own.md", "| fault of the library's client", 15)
}
