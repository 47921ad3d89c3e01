// SPDX-License-Identifier: Apache-2.0

package api

import (
	"go/importer"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/golden"
)

const (
	module = "github.com/longshore-go/longshore/"
	root   = "../.."
)

// public are the trees that people import; what is internal or a program within
// them is not.
var public = []string{"./core/...", "./pluginapi/...", "./host/..."}

// TestAPI compares what every public package exports with its file.
func TestAPI(t *testing.T) {
	readSources(t)
	files := exportFiles(t)
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	want := make(map[string]bool)
	for _, path := range publicPackages(t) {
		name := strings.ReplaceAll(strings.TrimPrefix(path, module), "/", "_") + ".txt"
		want[name] = true
		t.Run(strings.TrimPrefix(path, module), func(t *testing.T) {
			pkg, err := imports.Import(path)
			if err != nil {
				t.Fatalf("import %s: %v", path, err)
			}
			golden.Compare(t, filepath.Join("testdata", name), describe(pkg))
		})
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !want[e.Name()] {
			t.Errorf("testdata/%s is of no public package; delete it", e.Name())
		}
	}
}

// readSources looks at every source file, since go test takes a former result for
// good when no file that the test itself has looked at is another one.
func readSources(t *testing.T) {
	t.Helper()
	for _, tree := range public {
		err := filepath.WalkDir(filepath.Join(root, strings.TrimSuffix(tree, "...")), func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// publicPackages returns the paths of the packages that people import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var paths []string
	for line := range strings.Lines(list(t, append([]string{"-f", "{{.Name}} {{.ImportPath}}"}, public...)...)) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "main" && !slices.Contains(strings.Split(path, "/"), "internal") {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatal("go list knows no public package")
	}
	return paths
}

// exportFiles maps the public packages, and all that they import, to the files
// in which the compiler keeps what they export.
func exportFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	args := append([]string{"-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}"}, public...)
	for line := range strings.Lines(list(t, args...)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files
}

// list runs go list for Linux, so that the files are the same wherever the test
// runs.
func list(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, said.String())
	}
	return string(out)
}
