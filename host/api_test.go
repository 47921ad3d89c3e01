// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/longshore-go/longshore/"

// imports asks go list, once for all tests, what every package of the module and
// below it imports.
var imports = sync.OnceValues(func() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}}={{join .Imports ","}}`, "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		pkg, list, _ := strings.Cut(strings.TrimSpace(line), "=")
		all[pkg] = strings.Split(list, ",")
	}
	return all, nil
})

// linked lists the packages that those in these folders link, which end in /...
// where those below are meant.
func linked(t *testing.T, folders ...string) []string {
	t.Helper()
	all, err := imports()
	if err != nil {
		t.Fatal(err)
	}
	var deps []string
	seen := make(map[string]bool)
	var add func(pkg string)
	add = func(pkg string) {
		if _, ok := all[pkg]; !ok || seen[pkg] {
			return
		}
		seen[pkg] = true
		deps = append(deps, pkg)
		for _, i := range all[pkg] {
			add(i)
		}
	}
	for _, f := range folders {
		root, below := strings.CutSuffix(module+f, "/...")
		before := len(deps)
		for pkg := range all {
			if pkg == root || below && strings.HasPrefix(pkg, root+"/") {
				add(pkg)
			}
		}
		if len(deps) == before && !seen[root] {
			t.Fatalf("go list knows no package in %s", f)
		}
	}
	return deps
}

// TestWhatAServiceLinks proves that a host and a plugin link no client of any
// transport and no database.
func TestWhatAServiceLinks(t *testing.T) {
	for _, dep := range linked(t, "host", "host/hosttest", "pluginapi", "pluginapi/inproc") {
		for _, banned := range []string{"zmq", "zeromq", "pulsar", "paho", "mqtt", "sea-streamer", "seastreamer", "sqlite", "database/sql", module + "plugins/"} {
			if strings.Contains(dep, banned) {
				t.Errorf("%s is linked", dep)
			}
		}
	}
}

// TestOnlyTheDemoLinksABroker proves that the broker of longshore demo is in no
// plugin and no library.
func TestOnlyTheDemoLinksABroker(t *testing.T) {
	for _, dep := range linked(t, "core/...", "pluginapi/...", "host/...", "plugins/...") {
		if strings.Contains(dep, "mochi-mqtt") {
			t.Errorf("%s is linked", dep)
		}
	}
}

// TestPulsarIsSpokenByHand proves that the Pulsar plugin has no other client in it: that
// one is what its tests and benchmarks compare it with.
func TestPulsarIsSpokenByHand(t *testing.T) {
	for _, dep := range linked(t, "plugins/pulsar/...") {
		if strings.Contains(dep, "pulsar-client-go") {
			t.Errorf("%s is linked", dep)
		}
	}
}

// TestAServiceLinksNoTests proves that what is made for tests is in no service.
func TestAServiceLinksNoTests(t *testing.T) {
	for _, dep := range linked(t, "host") {
		if dep == module+"host/hosttest" || strings.HasPrefix(dep, module+"internal/memory") {
			t.Errorf("%s is linked", dep)
		}
	}
}

// TestImportsPointOneWay proves core <- pluginapi <- host <- cmd, with plugins
// on pluginapi and core alone, and go-plugin in two packages.
func TestImportsPointOneWay(t *testing.T) {
	allowed := map[string][]string{
		"core":      {"core"},
		"pluginapi": {"core", "pluginapi", "internal"},
		"plugins":   {"core", "pluginapi", "plugins"},
		"host":      {"core", "pluginapi", "host", "internal"},
	}
	all, err := imports()
	if err != nil {
		t.Fatal(err)
	}
	for pkg, imported := range all {
		inner, ours := strings.CutPrefix(pkg, module)
		if !ours {
			continue
		}
		top, _, _ := strings.Cut(inner, "/")
		for _, i := range imported {
			// Plugins that break the rules on purpose need it as well.
			user := pkg == module+"internal/process" || pkg == module+"pluginapi" || strings.HasPrefix(pkg, module+"internal/testplugin")
			if strings.HasPrefix(i, "github.com/hashicorp/go-plugin") && !user {
				t.Errorf("%s imports %s", pkg, i)
			}
			inner, ours := strings.CutPrefix(i, module)
			to, _, _ := strings.Cut(inner, "/")
			if may, ok := allowed[top]; ours && ok && !slices.Contains(may, to) {
				t.Errorf("%s imports %s", pkg, i)
			}
		}
	}
}

// foreign are packages whose types stand in no exported signature.
var foreign = regexp.MustCompile(`google\.golang\.org/grpc|hashicorp/|/internal/`)

// TestNoForeignTypesAreExported reads what the public packages export: nothing
// of gRPC or of go-plugin, and in core and host nothing of internal packages.
func TestNoForeignTypesAreExported(t *testing.T) {
	for _, pkg := range []string{"core", "pluginapi", "pluginapi/inproc", "host", "host/hosttest"} {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pkg, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			names := foreignNames(f)
			for _, d := range f.Decls {
				for _, used := range exported(d) {
					path, ok := names[used]
					if ok && strings.HasPrefix(pkg, "pluginapi") && strings.HasPrefix(path, module) {
						continue // what the host and inproc share is of no use to anybody else
					}
					if ok {
						t.Errorf("%s exports a type of %s", name, path)
					}
				}
			}
		}
	}
}

// foreignNames maps the names under which a file imports foreign packages.
func foreignNames(f *ast.File) map[string]string {
	names := make(map[string]string)
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if !foreign.MatchString(path) {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = path
	}
	return names
}

// exported lists the packages whose names the exported part of a declaration
// uses.
func exported(d ast.Decl) []string {
	var out []string
	use := func(n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					out = append(out, x.Name)
				}
			}
			return true
		})
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverExported(d) {
			use(d.Type)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					useType(s.Type, use)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() {
					use(s.Type)
				}
			}
		}
	}
	return out
}

// receiverExported reports whether d is a function, or a method of an exported
// type.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	found := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !found {
			found = id.IsExported()
			return false
		}
		return true
	})
	return found
}

// useType uses the exported part of a type.
func useType(t ast.Expr, use func(ast.Node)) {
	s, ok := t.(*ast.StructType)
	if !ok {
		use(t)
		return
	}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 || f.Names[0].IsExported() {
			use(f.Type)
		}
	}
}
