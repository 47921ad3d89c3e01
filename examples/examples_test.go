// SPDX-License-Identifier: Apache-2.0

// Package examples runs the examples as their comments say, and compares what
// they print with what stands beside them.
package examples

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/programtest"
)

// bin is where the programs are that the examples need.
var bin string

// TestMain builds them into one folder, as make build does.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "longshore-examples")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		err = programtest.Folder(dir,
			"./cmd/longshore", "./plugins/pipe/longshore-transport-pipe", "./plugins/file/longshore-transport-file",
			"./plugins/zmq/longshore-transport-zmq", "./examples/quickstart", "./examples/replay-a-day", "./examples/audit-log",
			"./examples/queue-workers", "./examples/fan-out", "./examples/rpc",
			"./plugins/mqtt/longshore-transport-mqtt", "./examples/telemetry", "./examples/shared-workers", "./examples/request-reply",
			"./plugins/pulsar/longshore-transport-pulsar", "./examples/counted-jobs", "./examples/keyed-order", "./examples/bridge")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		cmd := exec.Command("go", "build", "-o", dir+"/", ".")
		cmd.Dir = "custom-transport"
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // as the others, so that what it imports is compiled once
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build custom-transport: %v\n%s", err, out)
			return 1
		}
		bin = dir
		return m.Run()
	}())
}

// limit is what any program here may take; all of them end long before.
const limit = 2 * time.Minute

// stamp is the time in a line of the pipe transport.
var stamp = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \| `)

// run runs a program in a folder to its end, with a file as its standard
// input, and returns its output and its log.
func run(t *testing.T, dir, input string, args ...string) (out, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, args[0]), args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR="+bin)
	if input != "" {
		text, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = bytes.NewReader(text)
	}
	var printed, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v:\n%s", strings.Join(args, " "), err, errs.String())
	}
	return stamp.ReplaceAllString(printed.String(), "[TIME | "), errs.String()
}

// compare compares an example's output with what stands beside it.
func compare(t *testing.T, name, got, log string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(name, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("output (-want +got):\n%s\n%s", diff, log)
	}
}

func TestExamples(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		args        []string
	}{
		{"quickstart", "quickstart/orders.txt", []string{"quickstart"}},
		{"filter", "filter/words.txt", []string{"longshore", "run", "examples/filter/filter.yaml"}},
		{"custom-transport", "", []string{"longshore", "run", "examples/custom-transport/service.yaml"}},
		{"replay-a-day", "", []string{"replay-a-day", "examples/replay-a-day/harbour.ss", "2026-11-29"}},
		{"queue-workers", "", []string{"queue-workers"}},
		{"fan-out", "", []string{"fan-out"}},
		{"rpc", "", []string{"rpc"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, log := run(t, "..", tt.input, tt.args...)
			compare(t, tt.name, out, log)
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
