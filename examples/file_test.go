// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The audit log's expected output is a session: lines that begin with $ are
// commands, what follows is what they print.
func TestAuditLog(t *testing.T) {
	want, err := os.ReadFile("audit-log/expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var got, logs strings.Builder
	for line := range strings.Lines(string(want)) {
		command, found := strings.CutPrefix(line, "$ ")
		if !found {
			continue
		}
		call, input, redirected := strings.Cut(strings.TrimSpace(command), " < ")
		if redirected {
			input = filepath.Join("audit-log", input)
		}
		out, log := run(t, dir, input, strings.Fields(call)...)
		got.WriteString(line + out)
		logs.WriteString(line + log)
	}
	compare(t, "audit-log", got.String(), logs.String())
}

// What one service writes another prints, from the moment at which it first reads,
// and, when it is started again, from where it was. The end mark ends it.
func TestTailToPipe(t *testing.T) {
	t.Setenv("LOG", filepath.Join(t.TempDir(), "harbour.ss"))
	write := func() {
		run(t, "..", "tail-to-pipe/lines.txt", "longshore", "run", "examples/tail-to-pipe/append.yaml")
	}
	write() // before anybody reads
	tail(t, write)
	write() // between two readers
	tail(t, func() {})
	looked, log := run(t, "..", "", "longshore", "run", "examples/tail-to-pipe/look.yaml")
	for _, line := range []string{"] cranes.4 1: crane 4 moves\n", "] cranes.7 6: crane 7 is idle\n", "] gates 6: gate 3 is shut\n"} {
		if strings.Count(looked, line) != 1 {
			t.Errorf("the file is printed as:\n%s\nwant %q once:\n%s", looked, line, log)
		}
	}
}

// tail runs the reader, calls a function once it serves, and compares what it has
// printed when it has ended.
func tail(t *testing.T, serving func()) {
	t.Helper()
	out, told := serve(t, "examples/tail-to-pipe/tail.yaml", func(line string, _ *os.Process) {
		if strings.Contains(line, "host serves") {
			serving()
		}
	})
	// Keys are written beside one another.
	compare(t, "tail-to-pipe", strings.Join(slices.Sorted(strings.Lines(out)), ""), told)
}

// serve runs a service file to its end and returns its output and its log. It
// hands each line of the log to a function, as it comes.
func serve(t *testing.T, file string, told func(line string, p *os.Process)) (out, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "longshore"), "run", file)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR="+bin)
	var printed, all strings.Builder
	cmd.Stdout = &printed
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		told(lines.Text(), cmd.Process)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v:\n%s", err, &all)
	}
	return printed.String(), all.String()
}
