// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/longshore-go/longshore/internal/golden"
)

// The module as it is written, whole.
func TestModule(t *testing.T) {
	files, err := Module{Name: "harbour", Path: "github.com/somebody/longshore-transport-harbour", Version: "v1.2.3"}.Files()
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&all, "-- %s --\n%s", f.Name, f.Text)
		if strings.Contains(string(f.Text), "[[") || !bytes.HasSuffix(f.Text, []byte("\n")) {
			t.Errorf("%s has a mark that is not filled in, or no end of its last line", f.Name)
		}
		switch path.Ext(f.Name) {
		case ".go":
			if tidy, err := format.Source(f.Text); err != nil || !bytes.Equal(tidy, f.Text) {
				t.Errorf("%s is not as gofmt has it: %v", f.Name, err)
			}
		case ".yml", ".yaml":
			var tree map[string]any
			if err := yaml.Unmarshal(f.Text, &tree); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	golden.Compare(t, "testdata/module.golden", all.Bytes())
}

func TestGoMod(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	spaced := filepath.Join(t.TempDir(), "a folder")
	if err := os.Symlink(root, spaced); err != nil {
		t.Fatal(err)
	}
	const head = "module example.com/longshore-transport-x\n\ngo 1.26.0\n"
	const tool = "\ntool github.com/longshore-go/longshore/cmd/longshore\n"
	const require, replace = "\nrequire github.com/longshore-go/longshore ", "\nreplace github.com/longshore-go/longshore => "
	for _, tt := range []struct {
		name   string
		module Module
		want   string
	}{
		{"release", Module{Version: "v1.2.3"}, head + require + "v1.2.3\n" + tool},
		{"development build", Module{}, head + tool},
		{"checkout", Module{Replace: root}, head + require + "v0.0.0\n" + tool + replace + root + "\n"},
		{"checkout of a release", Module{Version: "v1.2.3", Replace: root}, head + require + "v1.2.3\n" + tool + replace + root + "\n"},
		{"relative checkout", Module{Replace: "../../../.."}, head + require + "v0.0.0\n" + tool + replace + "../../../../..\n"},
		{"relative checkout beside", Module{Replace: "../../../..", Dir: filepath.Join("..", "..", "..", "..", "..", "x")}, head + require + "v0.0.0\n" + tool + replace + "../" + filepath.Base(root) + "\n"},
		{"checkout within", Module{Replace: "../../../..", Dir: filepath.Dir(root)}, head + require + "v0.0.0\n" + tool + replace + "./" + filepath.Base(root) + "\n"},
		{"checkout with a space", Module{Replace: spaced}, head + require + "v0.0.0\n" + tool + replace + fmt.Sprintf("%q", spaced) + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.module.Name = "x"
			files, err := tt.module.Files()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range files {
				if f.Name == "go.mod" {
					got = string(f.Text)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("go.mod (-want +got):\n%s", diff)
			}
			parse := exec.Command("go", "mod", "edit", "-json", "/dev/stdin")
			parse.Stdin = strings.NewReader(got)
			if out, err := parse.CombinedOutput(); err != nil {
				t.Errorf("the go command cannot read it: %v\n%s", err, out)
			}
		})
	}
}

// The version of Go is that of longshore itself.
func TestGoVersion(t *testing.T) {
	own, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text, err := templates.ReadFile("template/go.mod.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(own)) {
		if strings.HasPrefix(line, "go ") && !strings.Contains(string(text), "\n"+line) {
			t.Errorf("go.mod of the template lacks %q", line)
		}
	}
}

func TestArguments(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module example.com/other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		module Module
		want   ArgumentError
	}{
		{"upper case", Module{Name: "My Queue"}, ArgumentError{"NAME", `cannot be "My Queue"`, "use my-queue"}},
		{"dots", Module{Name: "kafka.v2"}, ArgumentError{"NAME", `cannot be "kafka.v2"`, "use kafka-v2"}},
		{"begins with a dash", Module{Name: "-x"}, ArgumentError{"NAME", `cannot be "-x"`, "use x"}},
		{"a path", Module{Name: "../x"}, ArgumentError{"NAME", `cannot be "../x"`, "use x"}},
		{"nothing", Module{Name: ""}, ArgumentError{"NAME", `cannot be ""`, "choose one like"}},
		{"no letter at all", Module{Name: "ж"}, ArgumentError{"NAME", `cannot be "ж"`, "choose one like"}},
		{"a line", Module{Name: "x\n"}, ArgumentError{"NAME", `cannot be "x\n"`, "use x"}},
		{"too long", Module{Name: strings.Repeat("x", 65)}, ArgumentError{"NAME", "has 65 characters, and the limit is 64", "choose one like"}},
		{"the program's name", Module{Name: "longshore-transport-x"}, ArgumentError{"NAME", "begins with longshore-transport- by itself", "use x"}},
		{"module with a space", Module{Name: "x", Path: "a b"}, ArgumentError{"--module", `cannot be "a b"`, "use one like github.com/you/longshore-transport-x"}},
		{"module with an empty part", Module{Name: "x", Path: "a//longshore-transport-x"}, ArgumentError{"--module", "no module path", "use one like"}},
		{"module of another end", Module{Name: "x", Path: "github.com/me/x"}, ArgumentError{"--module", `is "github.com/me/x"`, "use github.com/me/x/longshore-transport-x"}},
		{"replace nothing", Module{Name: "x", Replace: "no-such-folder"}, ArgumentError{"--replace", "no go.mod", "go.mod of github.com/longshore-go/longshore"}},
		{"replace another", Module{Name: "x", Replace: other}, ArgumentError{"--replace", "that of example.com/other", "go.mod of github.com/longshore-go/longshore"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := tt.module.Write()
			var got *ArgumentError
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want an *ArgumentError", err)
			}
			if got.Argument != tt.want.Argument || !strings.Contains(got.Reason, tt.want.Reason) || !strings.Contains(got.Fix, tt.want.Fix) {
				t.Errorf("got %q, want %+v", got, tt.want)
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("%v: %v is left", err, left)
			}
		})
	}
	for _, path := range []string{"", "longshore-transport-x", "a.b/c/longshore-transport-x", "a.b/longshore-transport-x/v2"} {
		if _, err := (Module{Name: "x", Path: path}).Files(); err != nil {
			t.Errorf("module %q: %v", path, err)
		}
	}
}
