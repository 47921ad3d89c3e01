// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/programtest"
)

// limit is what any command here may take.
const limit = 5 * time.Minute

// command returns a command in a folder.
func command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // as make builds programs, so that what they import is compiled once
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// output runs a command and returns what it prints.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// written writes the module with what go mod tidy would add, taken from the
// module of longshore: so nothing has to be fetched.
func written(t *testing.T, root string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "harbour")
	if _, err := (Module{Name: "harbour", Dir: dir, Replace: root}).Write(); err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	mod := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(mod)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile(`(?s)\nrequire \(.*?\n\)\n`).FindAll(own, -1) {
		text = append(text, block...)
	}
	if err := os.WriteFile(mod, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is written is vetted, built, described, run by a service, and passes the
// conformance suite, as it stands.
func TestWrittenModule(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := written(t, root), t.TempDir()
	if err := programtest.Folder(bin, "./cmd/longshore", "./plugins/pipe/longshore-transport-pipe"); err != nil {
		t.Fatal(err)
	}
	output(t, command(t, dir, "go", "build", "-o", bin+"/", ".")) // named by the module's path
	longshore := filepath.Join(bin, "longshore")
	t.Run("vet", func(t *testing.T) { output(t, command(t, dir, "go", "vet", "./...")) })
	t.Run("describe", func(t *testing.T) {
		out := output(t, command(t, bin, longshore, "plugin", "describe", "harbour"))
		for _, want := range []string{"harbour 0.1.0", "counts deliveries", "max_messages", "max_bytes"} {
			if !strings.Contains(out, want) {
				t.Errorf("got %s, which lacks %q", out, want)
			}
		}
	})
	t.Run("service", func(t *testing.T) { runService(t, dir, longshore) })
	t.Run("settings", func(t *testing.T) { refuseSettings(t, dir, longshore) })
	t.Run("card", func(t *testing.T) { writeCard(t, dir) })
	t.Run("conformance", func(t *testing.T) { passSuite(t, dir) })
}

// needMore are cases that the queue cannot be tried in: no destination hangs, no
// delivery has an identity, and there is no connection to cut.
var needMore = []string{"publish/stalled", "settle/identity", "unsettled/disconnect", "unsettled/void"}

// passSuite runs the module's own test: every case that applies has passed.
func passSuite(t *testing.T, dir string) {
	out := output(t, command(t, dir, "go", "test", "-v", "./..."))
	cases := regexp.MustCompile(`(?m)^ +plugintest\.go:\d+: (passed|not run) +(\S+)$`).FindAllStringSubmatch(out, -1)
	passed := 0
	for _, c := range cases {
		switch {
		case c[1] == "passed":
			passed++
		case !slices.Contains(needMore, c[2]):
			t.Errorf("%s was not run:\n%s", c[2], out)
		}
	}
	if passed < 20 {
		t.Errorf("%d cases have passed, which cannot be all:\n%s", passed, out)
	}
}

// writeCard runs the line of the workflow that writes the card, with few cases.
func writeCard(t *testing.T, dir string) {
	output(t, command(t, dir, "go", "build", "-o", "bin/", "."))
	workflow, err := os.ReadFile(filepath.Join(dir, ".github", "workflows", "ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)- run: go (tool longshore conform .*)$`).FindSubmatch(workflow)
	if line == nil {
		t.Fatalf("the workflow writes no card:\n%s", workflow)
	}
	output(t, command(t, dir, "go", append(strings.Fields(string(line[1])), "--run", "^describe/")...))
	for _, card := range []string{"card.json", "card.md"} {
		if text, err := os.ReadFile(filepath.Join(dir, card)); err != nil || !strings.Contains(string(text), "describe/stable") {
			t.Errorf("%s: %v, or without its cases:\n%s", card, err, text)
		}
	}
}

// runService runs the service file of the module: every line is retried once, by
// the queue's own count, and printed.
func runService(t *testing.T, dir, longshore string) {
	cmd := command(t, dir, longshore, "run", "service.yaml")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(input, "1\n2\n3\n"); err != nil {
		t.Error(err)
	}
	var got []string
	for lines := bufio.NewScanner(out); len(got) < 3 && lines.Scan(); {
		got = append(got, lines.Text())
	}
	// The queue is open as long as the service: a stop ends it.
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v behind them", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("run: %v\n%s", err, log.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"job 1, attempt 2", "job 2, attempt 2", "job 3, attempt 2"}, got); diff != "" {
		t.Errorf("output (-want +got):\n%s\n%s", diff, log.String())
	}
}

// refuseSettings: what is wrong is named, field by field, and a queue that nobody
// reads is refused before anything runs.
func refuseSettings(t *testing.T, dir, longshore string) {
	for _, tt := range []struct {
		name, settings, dead string
		want                 []string
	}{
		{"settings", "{max_messages: 0, max_bites: 1}", "jobs", []string{"max_messages", "max_bites"}},
		{"unread", "{}", "dead", []string{`no subscription reads queue "dead"`, "subscribe to it"}},
	} {
		file := filepath.Join(t.TempDir(), "service.yaml")
		text := "endpoints:\n  queues: {transport: harbour, settings: " + tt.settings + "}\nsubscriptions:\n" +
			"  - {from: queues, name: jobs, exec: {command: [cat]}, dead_letter: {to: queues, name: " + tt.dead + "}, max_attempts: 3}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := command(t, dir, longshore, "run", file)
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%s: the service runs", tt.name)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: got %s, which lacks %q", tt.name, out, want)
			}
		}
	}
}
