// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/cmd/longshore/internal/scaffold"
	"github.com/longshore-go/longshore/internal/golden"
)

func TestNewHelp(t *testing.T) {
	for _, args := range [][]string{{"new"}, {"new", "transport"}} {
		name := strings.Join(append([]string{"longshore"}, args...), "-")
		status, out, errs := call(t, append(args, "--help")...)
		if status != ExitOK || errs != "" {
			t.Errorf("%s: got status %d, standard error %q", name, status, errs)
		}
		golden.Compare(t, filepath.Join("testdata/help", name+".golden"), []byte(out))
	}
}

// What is printed are the steps that lead on, for each kind of build.
func TestNextSteps(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct {
		name   string
		module scaffold.Module
	}{
		{"release", scaffold.Module{Name: "harbour", Version: "v1.2.3"}},
		{"checkout", scaffold.Module{Name: "harbour", Replace: "../longshore", Dir: "my transports/harbour"}},
		{"development build", scaffold.Module{Name: "harbour", Path: "github.com/somebody/longshore-transport-harbour"}},
	} {
		all.WriteString("-- " + tt.name + " --\n" + nextSteps(tt.module.WithDefaults(), 15))
	}
	golden.Compare(t, "testdata/new-transport.golden", []byte(all.String()))
}

func TestNewTransport(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	status, out, errs := call(t, "new", "transport", "harbour", "--dir", "a/b", "--replace", root)
	if status != ExitOK || errs != "" {
		t.Fatalf("got status %d, standard error %q", status, errs)
	}
	if want := "cd a/b\n  go mod tidy\n"; !strings.Contains(out, want) {
		t.Errorf("got %q, want it to say %q", out, want)
	}
	mod, err := os.ReadFile("a/b/go.mod")
	if err != nil || !strings.Contains(string(mod), "=> "+root) {
		t.Errorf("got %q, %v", mod, err)
	}
	// A second time there is something already.
	status, out, errs = call(t, "new", "transport", "harbour", "--dir", "a/b")
	if status != ExitUsage || out != "" || !strings.Contains(errs, `--dir cannot be "a/b": it is there and holds`) {
		t.Errorf("got status %d, %q and %q, want %d", status, out, errs, ExitUsage)
	}
}

func TestNewTransportUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"no name", nil, ExitUsage, "NAME is missing; longshore new transport --help says what there is"},
		{"two names", []string{"a", "b"}, ExitUsage, "there is one NAME, and 2 arguments"},
		{"name", []string{"My Queue"}, ExitUsage, `NAME cannot be "My Queue"`},
		{"module", []string{"x", "--module", "github.com/me/x"}, ExitUsage, "use github.com/me/x/longshore-transport-x; longshore new transport --help"},
		{"replace", []string{"x", "--replace", "nowhere"}, ExitUsage, `--replace cannot be "nowhere"`},
		{"a file", []string{"x", "--dir", "file"}, ExitUsage, `--dir cannot be "file": it is a file`},
		{"below a file", []string{"x", "--dir", "file/x"}, ExitInternal, "not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, out, errs := call(t, append([]string{"new", "transport"}, tt.args...)...)
			if status != tt.status || out != "" {
				t.Errorf("got status %d and output %q, want %d and none", status, out, tt.status)
			}
			if !strings.HasPrefix(errs, "longshore: ") || !strings.Contains(errs, tt.want) {
				t.Errorf("got %q, want it to say %q", errs, tt.want)
			}
		})
	}
	if status, _, errs := call(t, "new", "transprot"); status != ExitUsage || !strings.Contains(errs, "did you mean transport?") {
		t.Errorf("got status %d and %q", status, errs)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
		t.Errorf("%v: got %v in the folder, want the file alone", err, entries)
	}
}

// Only what others can fetch is required.
func TestReleaseOf(t *testing.T) {
	const here = scaffold.Longshore
	for _, tt := range []struct {
		name string
		main debug.Module
		want string
	}{
		{"no version", debug.Module{Path: here}, ""},
		{"go build", debug.Module{Path: here, Version: "(devel)"}, ""},
		{"a tag", debug.Module{Path: here, Version: "v1.2.3"}, "v1.2.3"},
		{"a tag before a release", debug.Module{Path: here, Version: "v1.2.3-rc.1"}, "v1.2.3-rc.1"},
		{"a tag with changes", debug.Module{Path: here, Version: "v1.2.3+dirty"}, ""},
		{"a commit of a checkout", debug.Module{Path: here, Version: "v0.0.0-20261130104524-8d831b5aaaaa"}, ""},
		{"a commit behind a tag", debug.Module{Path: here, Version: "v1.2.4-0.20261130104524-8d831b5aaaaa"}, ""},
		{"a commit that go install fetched", debug.Module{Path: here, Version: "v0.0.0-20261130104524-8d831b5aaaaa", Sum: "h1:x"}, "v0.0.0-20261130104524-8d831b5aaaaa"},
		{"a tool of a module that replaces it", debug.Module{Path: here, Version: "v1.2.3", Replace: &debug.Module{Path: "../longshore"}}, ""},
		{"another module", debug.Module{Path: "example.com/fork", Version: "v1.2.3"}, ""},
	} {
		if got := releaseOf(&debug.BuildInfo{Main: tt.main}, true); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := releaseOf(nil, false); got != "" {
		t.Errorf("got %q without build information", got)
	}
}
