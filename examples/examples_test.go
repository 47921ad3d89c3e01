// SPDX-License-Identifier: Apache-2.0

// Package examples runs the examples as their comments say, and compares what
// they print with what stands beside them.
package examples

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// build builds the programs that the examples need into one folder, as make
// build does.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, b := range []struct{ in, packages string }{
		{"..", "./cmd/longshore ./plugins/pipe/longshore-transport-pipe ./examples/quickstart"},
		{"custom-transport", "."},
	} {
		cmd := exec.Command("go", append([]string{"build", "-o", dir + "/"}, strings.Fields(b.packages)...)...)
		cmd.Dir = b.in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build in %s: %v\n%s", b.in, err, out)
		}
	}
	return dir
}

// stamp is the time in a line of the pipe transport.
var stamp = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \| `)

func TestExamples(t *testing.T) {
	bin := build(t)
	for _, tt := range []struct {
		name, input string
		args        []string
	}{
		{"quickstart", "quickstart/orders.txt", []string{"quickstart"}},
		{"filter", "filter/words.txt", []string{"longshore", "run", "examples/filter/filter.yaml"}},
		{"custom-transport", "", []string{"longshore", "run", "examples/custom-transport/service.yaml"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(tt.name, "expected.txt"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(bin, tt.args[0]), tt.args[1:]...)
			cmd.Dir = ".."
			cmd.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR="+bin)
			if tt.input != "" {
				input, err := os.ReadFile(tt.input)
				if err != nil {
					t.Fatal(err)
				}
				cmd.Stdin = bytes.NewReader(input)
			}
			var log bytes.Buffer
			cmd.Stderr = &log
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v:\n%s", err, log.String())
			}
			got := stamp.ReplaceAllString(string(out), "[TIME | ")
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("output (-want +got):\n%s\n%s", diff, log.String())
			}
		})
	}
}

// The toy transport stays a toy, and needs nothing but what its authors get.
func TestCustomTransportIsSmall(t *testing.T) {
	source, err := os.ReadFile("custom-transport/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("\n")); n > 80 {
		t.Errorf("it has %d lines, want 80 at most", n)
	}
	for _, m := range regexp.MustCompile(`"(github\.com/[^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		switch m[1] {
		case "github.com/longshore-go/longshore/core", "github.com/longshore-go/longshore/pluginapi":
		default:
			t.Errorf("it imports %s", m[1])
		}
	}
}

// The README shows the code of the quickstart, whole.
func TestReadmeShowsTheQuickstart(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	code := source[bytes.Index(source, []byte("package main\n")):]
	if !bytes.Contains(readme, code) {
		t.Errorf("README.md lacks this code of examples/quickstart:\n%s", code)
	}
}
