// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/programtest"
)

// bin is where the programs under test are: what a user has in one folder.
var bin string

// TestMain builds the programs as a user does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == injectorWord || os.Args[1] == collectorWord) {
		os.Exit(outsideMain(os.Args[1]))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "longshore-cmd")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := programtest.Folder(dir,
			"./cmd/longshore", "./plugins/pipe/longshore-transport-pipe", "./plugins/file/longshore-transport-file",
			"./plugins/zmq/longshore-transport-zmq", "./plugins/mqtt/longshore-transport-mqtt", "./internal/mosquitto/longshore-mqtt-outside",
			"./plugins/pulsar/longshore-transport-pulsar", "./internal/pulsarbroker/longshore-pulsar-outside"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		bin = dir
		return m.Run()
	}())
}

// limit is what any run or wait here may take; all of them end by themselves
// long before.
const limit = 2 * time.Minute

// command returns longshore with arguments, in an environment of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "longshore"), args...)
	cmd.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR=", "HOME="+t.TempDir(), "XDG_DATA_HOME=")
	cmd.WaitDelay = limit
	return cmd
}

// service writes a service file.
func service(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is what a run came to.
type result struct {
	status   int
	out, err string
}

// run runs a service file with an input to its end.
func run(t *testing.T, file, input string, args ...string) result {
	t.Helper()
	cmd := command(t, append([]string{"run", file}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	return finish(t, cmd)
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	r := result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	gonePlugins(t, r.err)
	return r
}

// pids are the plugin processes that a log tells of.
var pids = regexp.MustCompile(`plugin process started.* pid=(\d+)`)

// gonePlugins checks that no plugin of a log is left.
func gonePlugins(t *testing.T, log string) {
	t.Helper()
	for _, m := range pids.FindAllStringSubmatch(log, -1) {
		pid := 0
		_, _ = fmt.Sscan(m[1], &pid)
		eventually(t, fmt.Sprintf("plugin %d is gone", pid), func() bool { return !alive(pid) })
	}
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come true within %v that %s", limit, what)
		}
	}
}

// lineForm is a line of the pipe transport.
var lineForm = regexp.MustCompile(`^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \| ([A-Za-z0-9_.-]+) \| (\d+)\] (.+)$`)

// keyed splits an output into payloads by key; every line must be one of the
// documented form, counted from 0 for each key.
func keyed(t *testing.T, out string) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	for line := range strings.Lines(out) {
		m := lineForm.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q is not of the documented form", line)
		}
		if want := fmt.Sprint(len(got[m[1]])); m[2] != want {
			t.Errorf("line %q: got number %s, want %s", line, m[2], want)
		}
		got[m[1]] = append(got[m[1]], m[3])
	}
	return got
}

// log is a standard error that can be waited for.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// says waits until a text is in the log.
func (l *log) says(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !strings.Contains(l.String(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say %q:\n%s", text, l.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}
