// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/testplugin/control"
)

const (
	envBin  = "LONGSHORE_TEST_BIN"  // folder with the plugin under test
	envHost = "LONGSHORE_TEST_HOST" // set in a test binary that is to be a host

	testPlugin = "github.com/longshore-go/longshore/internal/testplugin/longshore-transport-test"
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	switch os.Getenv(envHost) {
	case "":
	case "shell":
		return shellMain()
	default:
		return hostMain()
	}
	bin, err := os.MkdirTemp("", "lsp-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	build := exec.Command("go", "build", "-o", filepath.Join(bin, handshake.FilePrefix+"test"))
	if raceEnabled {
		build.Args = append(build.Args, "-race")
	}
	build.Args = append(build.Args, testPlugin)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the plugin under test: %v\n%s", err, out)
		return 1
	}
	// The race detector would let every process sleep for a second at its end.
	if errors.Join(os.Setenv(envBin, bin), os.Setenv("GORACE", "atexit_sleep_ms=0")) != nil {
		return 1
	}
	return leaktest.Run(m)
}

// pluginPath is the path of the plugin under test.
func pluginPath() string { return filepath.Join(os.Getenv(envBin), handshake.FilePrefix+"test") }

// quickPath is the path of the plugin under test without the race detector, with
// which a process takes four times as long to start: where many are started.
func quickPath(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, testPlugin)
}

// mode starts the plugin under test in a mode. Modes come by the environment,
// so a test that sets one runs alone; those beside others use a hostProcess.
func mode(t *testing.T, name string) Options {
	t.Helper()
	t.Setenv(control.EnvMode, name)
	return Options{Name: "test", Path: pluginPath(), Env: control.Env(), Logger: testLogger(t), StartLimit: patience}
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// patience bounds the wait for what must happen: on a busy machine it takes long.
const patience = 2 * time.Minute

// start starts a plugin that must start, and ends it at the end of the test.
func start(t *testing.T, o Options) *Process {
	t.Helper()
	p, err := Start(t.Context(), 1, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// ends waits until a channel is closed.
func ends(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	if !within(context.Background(), done, patience) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// alive says whether a process runs; a dead one that nobody has waited for does
// not.
func alive(pid int) bool {
	s := state(pid)
	return s != "" && s != "Z" && s != "X"
}

// state is a process's state: S, R, T (stopped), Z (dead); "" = there is none.
func state(pid int) string {
	if runtime.GOOS != "linux" {
		out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || len(out) == 0 {
			return ""
		}
		return string(out[:1])
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

// shortDir is a folder short enough for sockets, which t.TempDir may not be.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "lsp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// leftIn returns the private directories in a folder.
func leftIn(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, handshake.RunDirPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
