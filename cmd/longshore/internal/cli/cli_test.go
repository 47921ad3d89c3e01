// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/golden"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// call runs the command line within this process.
func call(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &App{Args: args, Out: &o, Err: &e, Environ: os.Environ(), Lookup: os.LookupEnv}
	return a.Main(), o.String(), e.String()
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"", "run", "explain", "plugin", "plugin list", "plugin describe", "conform", "demo", "version"} {
		name := strings.ReplaceAll(strings.TrimSpace("longshore "+command), " ", "-")
		t.Run(name, func(t *testing.T) {
			status, out, errs := call(t, append(strings.Fields(command), "--help")...)
			if status != ExitOK || errs != "" {
				t.Errorf("got status %d, standard error %q", status, errs)
			}
			golden.Compare(t, filepath.Join("testdata/help", name+".golden"), []byte(out))
			if strings.Contains(out, "\x1b") {
				t.Error("got colours off a terminal")
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown command", []string{"rnu", "x.yaml"}, `unknown command "rnu" for "longshore": did you mean run?; longshore --help says what there is`},
		{"unknown command like none", []string{"frobnicate"}, `unknown command "frobnicate" for "longshore"; longshore --help says what there is`},
		{"swapped letters", []string{"explian", "x.yaml"}, "did you mean explain?"},
		{"an argument too many", []string{"version", "1"}, `longshore version takes no argument, not even "1"`},
		{"unknown flag", []string{"run", "--drain", "1s", "x.yaml"}, "unknown flag: --drain; longshore run --help says what there is"},
		{"no file", []string{"run"}, "FILE is missing; longshore run --help says what there is"},
		{"two files", []string{"explain", "a.yaml", "b.yaml"}, "there is one FILE, and 2 arguments"},
		{"output form", []string{"explain", "-o", "xml", "a.yaml"}, `--output cannot be "xml": use text, json or markdown`},
		{"brief JSON", []string{"explain", "--brief", "-o", "json", "a.yaml"}, "--brief is for --output text"},
		{"log level", []string{"version", "--log-level", "loud"}, `--log-level cannot be "loud": use debug, info, warn or error`},
		{"log format", []string{"version", "--log-format", "xml"}, `--log-format cannot be "xml": use text or json`},
		{"duration", []string{"run", "--drain-limit", "5", "x.yaml"}, `invalid argument "5" for "--drain-limit" flag: write it like 5s or 1m30s`},
		{"no plugin name", []string{"plugin", "describe"}, "NAME is missing"},
		{"negative duration", []string{"run", "--drain-limit", "-5s", "x.yaml"}, "use 0 for no limit"},
		{"negative pace", []string{"demo", "--pace", "-5s"}, "use 0 for as fast as it goes"},
		{"unknown plugin command", []string{"plugin", "install"}, `unknown command "install" for "longshore plugin"`},
		{"missing file", []string{"run", "no-such-file.yaml"}, "read service file: open no-such-file.yaml: no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, out, errs := call(t, tt.args...)
			if status != ExitUsage || out != "" {
				t.Errorf("got status %d and output %q, want %d and none", status, out, ExitUsage)
			}
			if !strings.HasPrefix(errs, "longshore: ") || !strings.Contains(errs, tt.want) {
				t.Errorf("got %q, want it to say %q", errs, tt.want)
			}
		})
	}
}

func TestBadServiceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service.yaml")
	if err := os.WriteFile(path, []byte("endpoints:\n  in: {transprot: pipe}\nsubscriptions: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"run", "explain"} {
		t.Run(command, func(t *testing.T) {
			status, out, errs := call(t, command, path)
			want := "longshore: " + strings.Join([]string{
				path + ":2:7: endpoints.in.transport: is missing; add it: the transport's name: the plugin is the file longshore-transport-<name>",
				path + ":2:8: endpoints.in.transprot: unknown field; did you mean transport?",
				path + ":3:16: subscriptions: is empty; add one",
			}, "\n") + "\n"
			if diff := cmp.Diff(want, errs); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if status != ExitUsage || out != "" {
				t.Errorf("got status %d and output %q, want %d and none", status, out, ExitUsage)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	status, out, _ := call(t, "version", "--output", "json")
	var b build
	if err := json.Unmarshal([]byte(out), &b); err != nil || status != ExitOK {
		t.Fatalf("got status %d, %q: %v", status, out, err)
	}
	if b.Version == "" || b.Go == "" || b.Platform == "" || b.Protocol != 1 {
		t.Errorf("got %+v, want all of it", b)
	}
	_, out, _ = call(t, "version")
	if !strings.HasPrefix(out, "longshore "+b.Version) {
		t.Errorf("got %q, want the version first", out)
	}
	if status, flag, _ := call(t, "--version"); status != ExitOK || flag != out {
		t.Errorf("got status %d and %q, want what the command says", status, flag)
	}
}

func TestBuiltFrom(t *testing.T) {
	info := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	got := builtFrom(info)
	got.Go, got.Platform = "go1.26.0", "linux/amd64"
	want := "longshore v1.2.3 (0123456789ab, modified), plugin protocol 1, go1.26.0, linux/amd64"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
	if got := builtFrom(nil); got.Version != "(devel)" {
		t.Errorf("got %+v without build information", got)
	}
}

// What is printed and cannot be written is no usage error.
func TestUnwritableOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no full device here: %v", err)
	}
	defer func() { _ = full.Close() }()
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}, {"plugin", "list", "-o", "json"}} {
		var errs bytes.Buffer
		a := &App{Args: args, Out: full, Err: &errs, Environ: os.Environ(), Lookup: os.LookupEnv}
		if status := a.Main(); status != ExitInternal || !strings.Contains(errs.String(), "write output: ") {
			t.Errorf("%v: got status %d and %q, want %d", args, status, errs.String(), ExitInternal)
		}
	}
}

func TestPluginThatIsNotThere(t *testing.T) {
	status, _, errs := call(t, "plugin", "describe", "no-such-transport")
	if status != ExitStart || !strings.Contains(errs, "longshore plugin list shows what is installed") {
		t.Errorf("got status %d and %q", status, errs)
	}
}
