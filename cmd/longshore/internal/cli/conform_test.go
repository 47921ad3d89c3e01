// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/golden"
	"github.com/longshore-go/longshore/internal/process"
)

func TestWords(t *testing.T) {
	for in, want := range map[string][]string{
		"a b":                 {"a", "b"},
		"  a\t 'b c'  \n":     {"a", "b c"},
		`a"b c"d ''`:          {"ab cd", ""},
		`a\ b \"c "d\"e\f"`:   {"a b", `"c`, `d"e\f`},
		`'$HOME \n' "$x \$y"`: {`$HOME \n`, "$x $y"},
		"grün":                {"grün"},
		`"it's"`:              {"it's"},
	} {
		if got, err := words(in); err != nil || !cmp.Equal(want, got) {
			t.Errorf("words(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{"": "it is empty", "  ": "it is empty", "a 'b": "has no end", `a\`: "has no end", `"a\"`: "has no end"} {
		if got, err := words(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("words(%q) = %q, %v; want an error that says %q", in, got, err, want)
		}
	}
}

// A call that cannot end well is refused before anything runs: nothing is there
// to start at this path.
func TestConformUsage(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("a: 1\na: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const path = "longshore-transport-none"
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no path":            {nil, "PATH is missing; longshore conform --help says what there is"},
		"path with list":     {[]string{"--list", path}, "takes no argument"},
		"output form":        {[]string{path, "-o", "xml"}, `--output cannot be "xml": use text, json or markdown`},
		"list as page":       {[]string{"--list", "-o", "markdown"}, "--list is for --output text or json"},
		"pattern":            {[]string{path, "--run", "("}, "--run: error parsing regexp"},
		"no such case":       {[]string{path, "--run", "^nothing$"}, `--run: no case matches "^nothing$"; --list shows them`},
		"none at a time":     {[]string{path, "--parallel", "0"}, "--parallel: it cannot be 0"},
		"no wait":            {[]string{path, "--wait", "0s"}, "--wait: it cannot be 0s; give it more"},
		"duration":           {[]string{path, "--max-hold", "5"}, "write it like 5s or 1m30s"},
		"card of no form":    {[]string{path, "--card", "card.txt"}, "write card card.txt: its name says no form; end it with .json or .md"},
		"card in no folder":  {[]string{path, "--card", dir + "/none/card.md"}, "there is no folder " + dir + "/none"},
		"injector":           {[]string{path, "--inject", "no-such-injector x"}, "--inject: find command no-such-injector: executable file not found in $PATH; install it, or write its path"},
		"quote":              {[]string{path, "--collect", "cat 'x"}, "--collect: a quote or backslash has no end"},
		"settings":           {[]string{path, "--settings", bad}, bad + ":2:1: a: is given twice"},
		"options":            {[]string{path, "--options", bad}, bad + ":2:1: a: is given twice"},
		"no settings file":   {[]string{path, "--settings", dir + "/none.yaml"}, "read settings file: open " + dir + "/none.yaml: no such file or directory"},
		"empty disconnecter": {[]string{path, "--disconnect", " "}, "--disconnect: it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errs := call(t, append([]string{"conform"}, tt.args...)...)
			if status != ExitUsage || out != "" {
				t.Errorf("got status %d and output %q, want %d and none", status, out, ExitUsage)
			}
			if !strings.HasPrefix(errs, "longshore: ") || !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("got %q, want one line that says %q", errs, tt.want)
			}
		})
	}
}

// What is no plugin has a status of its own, one line, and no card.
func TestConformNoPlugin(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct{ path, want string }{
		"missing":        {filepath.Join(dir, "longshore-transport-none"), "there is no such file"},
		"folder":         {dir, "the file is not named longshore-transport-"},
		"not executable": {write("longshore-transport-plain", "x", 0o600), "chmod +x"},
		"no program":     {write("longshore-transport-text", "x\n", 0o700), "exec: it is no program"},
		"other name":     {write("plugin", "#!/bin/sh\n", 0o700), "the file is not named longshore-transport-"},
		"other program":  {write("longshore-transport-sh", "#!/bin/sh\necho hello\n", 0o700), "it exited with status 0 before its handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			cards := t.TempDir()
			status, out, errs := call(t, "conform", tt.path, "--card", filepath.Join(cards, "card.md"))
			if status != ExitNoPlugin || out != "" {
				t.Errorf("got status %d and output %q, want %d and none", status, out, ExitNoPlugin)
			}
			if !strings.HasPrefix(errs, "longshore: start plugin ") || !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("got %q, want one line that says %q", errs, tt.want)
			}
			if left, err := os.ReadDir(cards); err != nil || len(left) > 0 {
				t.Errorf("got files %v, %v; want none", left, err)
			}
		})
	}
}

func TestListCases(t *testing.T) {
	status, out, _ := call(t, "conform", "--list", "--output", "json")
	var all []listedCase
	if err := json.Unmarshal([]byte(out), &all); err != nil || status != ExitOK || len(all) != len(conform.Cases()) {
		t.Fatalf("got status %d, %d cases, %v; want the %d there are", status, len(all), err, len(conform.Cases()))
	}
	status, out, _ = call(t, "conform", "--list", "--run", "^"+all[0].ID+"$")
	if !strings.HasPrefix(out, all[0].ID) || !strings.HasSuffix(out, "  "+all[0].Claim+"\n") || strings.Count(out, "\n") != 1 || status != ExitOK {
		t.Errorf("got status %d, %q; want the line of %s", status, out, all[0].ID)
	}
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := progress{to: &b, style: term.Style{}, width: 15}
	for _, r := range []conform.Result{
		{Case: "credit/messages", Status: conform.Passed, Time: 120*time.Millisecond + 1, Notes: []string{"2 came twice"}},
		{Case: "credit/bytes", Status: conform.Failed, Time: 1234 * time.Millisecond, Faults: []string{"too much came\nof \x1b[31mit", "and more"}, Log: []string{"[warn] x"}},
		{Case: "credit/pause", Status: conform.Failed, Time: time.Second, Faults: []string{"1", "2", "3", "4", "5", "6", "7"}},
		{Case: "settle/requeue", Status: conform.NotApplicable, Reason: "no profile has a requeue"},
		{Case: "kill/host", Status: conform.NotRun, Reason: "the subject lacks an injector"},
		{Case: "leak/rounds", Status: conform.Passed, Time: 150 * time.Second},
		{Case: "describe/quick", Status: conform.Passed, Time: time.Microsecond},
	} {
		if err := p.result(&r); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/progress.golden", b.Bytes())
}

// What the plugin says of a field is said of the line that holds it.
func TestSettingsError(t *testing.T) {
	file, err := config.ParseSettings("s.yaml", []byte("queue:\n  bogus: x\nport: 1\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := &conform.SettingsError{Plugin: "x", Step: "settings", Fault: &core.Fault{Message: "refused", Diagnostics: []core.Diagnostic{
		{Path: "queue.bogus", Message: "unknown field", Fix: "remove it"}, {Path: "port", Message: "is too small"},
	}}}
	for name, tt := range map[string]struct {
		p    proof
		step string
		want string
	}{
		"settings":  {proof{settings: file}, "settings", "s.yaml:2:3: queue.bogus: unknown field; remove it\ns.yaml:3:1: port: is too small"},
		"options":   {proof{choices: file}, "subscription", "s.yaml:2:3: queue.bogus: unknown field; remove it\ns.yaml:3:1: port: is too small"},
		"no file":   {proof{}, "settings", "plugin x refuses the settings: refused: queue.bogus: unknown field; remove it\nplugin x refuses the settings: refused: port: is too small"},
		"another's": {proof{settings: file}, "destination", "plugin x refuses the destination: refused: queue.bogus"},
	} {
		t.Run(name, func(t *testing.T) {
			refused.Step = tt.step
			got := tt.p.explain(refused)
			if !strings.HasPrefix(got.Error(), tt.want) || status(got) != ExitSettings {
				t.Errorf("got status %d, %q; want %q", status(got), got, tt.want)
			}
		})
	}
}

func TestExplainErrors(t *testing.T) {
	p := &proof{}
	start := p.explain(&process.StartError{Name: "x", Endpoint: "conform", Stage: process.StageCheck, Reason: "is none"})
	if got, want := start.Error(), "start plugin x: check: is none"; got != want || status(start) != ExitNoPlugin {
		t.Errorf("got status %d, %q; want %q", status(start), got, want)
	}
	if got := status(p.explain(&process.StartError{Stage: process.StageDirectory})); got != ExitStart {
		t.Errorf("got status %d for a folder that cannot be made, want %d: that is no plugin's fault", got, ExitStart)
	}
	lacking := p.explain(&conform.SubjectError{Field: "destination", Reason: "is none", Fix: "give one"})
	if got, want := lacking.Error(), "--to: is none; give one; longshore conform --help says what there is"; got != want || status(lacking) != ExitUsage {
		t.Errorf("got status %d, %q; want %q", status(lacking), got, want)
	}
	other := errors.New("x")
	if got := p.explain(other); !errors.Is(got, other) {
		t.Errorf("got %v, want it as it is", got)
	}
}
