// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// shell returns a command that runs script, and the log that it writes.
func shell(t *testing.T, script string) (*Command, *bytes.Buffer) {
	t.Helper()
	path, err := Find("sh")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	return &Command{
		Path: path, Args: []string{"-c", script}, Timeout: limit, Payload: true,
		Env: os.Environ(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, &log
}

// input is a message with a payload.
func input(payload string) Input {
	return Input{
		Endpoint: "in", Subscription: "orders", Attempt: 2,
		Message: core.Message{Name: "orders", Payload: []byte(payload)},
	}
}

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         ExitError
	}{
		{"drop", "exit 65", ExitError{Status: 65}},
		{"dead letter", "echo first >&2; echo 'no such order' >&2; exit 70", ExitError{Status: 70, Stderr: "no such order"}},
		{"retry", "exit 75", ExitError{Status: 75}},
		{"other", "exit 3", ExitError{Status: 3}},
		{"signal", "kill -9 $$", ExitError{Status: -1, Signal: syscall.SIGKILL}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := shell(t, tt.script)
			_, err := c.Run(t.Context(), input("x"))
			var got *ExitError
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want an *ExitError", err)
			}
			tt.want.Command = c.Path
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPayloadGoesThrough(t *testing.T) {
	// More than a pipe holds, with every byte.
	payload := bytes.Repeat([]byte("0123456789abcdef\n\x00\xff"), 50_000)
	c, _ := shell(t, "cat")
	got, err := c.Run(t.Context(), input(string(payload)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(payload, got) {
		t.Errorf("got %d bytes, want the %d that went in", len(got), len(payload))
	}
}

func TestUnreadPayloadIsNoFailure(t *testing.T) {
	c, _ := shell(t, "exit 0")
	if _, err := c.Run(t.Context(), input(strings.Repeat("x", 1<<20))); err != nil {
		t.Errorf("got %v, want that the command need not read", err)
	}
}

func TestEnvironment(t *testing.T) {
	c, _ := shell(t, `env | grep ^LONGSHORE_ | LC_ALL=C sort`)
	c.Env = append(c.Env, "LONGSHORE_HEADER_STALE=from a surrounding command", "LONGSHORE_NAME=stale")
	in := input("")
	in.Message.Headers = core.Headers{
		{Name: "x-tenant", Value: []byte("first")},
		{Name: "X-Tenant", Value: []byte("acme, the last counts")},
		{Name: "content-type", Value: []byte("text/plain; q=1")},
		{Name: "größe", Value: []byte("7")},
		{Name: "zero", Value: []byte("a\x00b")},
		{Name: "large", Value: bytes.Repeat([]byte("x"), maxHeader)},
	}
	got, err := c.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := `LONGSHORE_ATTEMPT=2
LONGSHORE_ENDPOINT=in
LONGSHORE_HEADERS_LEFT_OUT=zero,large
LONGSHORE_HEADER_CONTENT_TYPE=text/plain; q=1
LONGSHORE_HEADER_GR__E=7
LONGSHORE_HEADER_X_TENANT=acme, the last counts
LONGSHORE_NAME=orders
LONGSHORE_SUBSCRIPTION=orders
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// 1 MiB in 3000 headers must not make the system refuse the command.
func TestManyHeaders(t *testing.T) {
	c, _ := shell(t, `env | grep -c ^LONGSHORE_HEADER_`)
	in := input("")
	for i := range 3000 {
		in.Message.Headers = append(in.Message.Headers, core.Header{
			Name: "h" + strconv.Itoa(i), Value: bytes.Repeat([]byte("v"), 350),
		})
	}
	got, err := c.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(strings.TrimSpace(string(got))); n < 1000 || n > 2000 {
		t.Errorf("got %s headers, want what fits %d bytes", got, maxHeaders)
	}
}

func TestOutputGoesToTheLog(t *testing.T) {
	c, log := shell(t, `echo out; echo err >&2; head -c 100000 /dev/zero | tr '\0' 'x'`)
	c.Payload = false
	got, err := c.Run(t.Context(), input(""))
	if err != nil || got != nil {
		t.Fatalf("got %q, %v; want neither", got, err)
	}
	for _, want := range []string{"msg=out ", "msg=err ", "stream=stdout", "stream=stderr", `msg="more output not shown"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %s:\n%.500s", want, log)
		}
	}
	if log.Len() > 3*maxLogged {
		t.Errorf("log has %d bytes, want it bounded", log.Len())
	}
}

func TestTooLargePayload(t *testing.T) {
	c, _ := shell(t, `head -c 67108865 /dev/zero`)
	_, err := c.Run(t.Context(), input(""))
	if err == nil || !strings.Contains(err.Error(), "67108865 bytes, above the limit of 67108864") {
		t.Errorf("got %v, want both sizes", err)
	}
}

// limit is what any wait here may take: much less than what is waited for in
// commands.
const limit = 2 * time.Minute

// A command that hangs is ended with all that it started.
func TestTimeoutEndsTheGroup(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	c, _ := shell(t, `trap '' TERM; sleep 600 & echo $! > `+pidFile+`; wait`)
	c.Timeout = 300 * time.Millisecond
	for begun := time.Now(); ; {
		started := time.Now()
		_, err := c.Run(t.Context(), input(""))
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Timeout != c.Timeout {
			t.Fatalf("got %v, want a timeout", err)
		}
		if took := time.Since(started); took > limit {
			t.Errorf("took %v", took)
		}
		if info, err := os.Stat(pidFile); err == nil && info.Size() > 0 || time.Since(begun) > limit {
			break
		}
	} // on a machine that is slow it is ended before it has started anything
	gone(t, pidFile)
}

// What a command leaves running in the background neither holds the message up
// nor outlives it.
func TestLeftBehindIsEnded(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	c, _ := shell(t, `sleep 600 & echo $! > `+pidFile+`; echo done`)
	started := time.Now()
	got, err := c.Run(t.Context(), input(""))
	if err != nil || string(got) != "done\n" {
		t.Errorf("got %q, %v; want its output", got, err)
	}
	if took := time.Since(started); took > limit {
		t.Errorf("took %v", took)
	}
	gone(t, pidFile)
}

// A stop is not a failure: it ends the command and says so by the context.
func TestStopEndsTheCommand(t *testing.T) {
	dir := t.TempDir()
	fifo, pidFile := filepath.Join(dir, "ready"), filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := shell(t, `trap 'exit 0' TERM; sleep 600 & echo $! > `+pidFile+`; echo > `+fifo+`; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(fifo) // the command has come so far
		cancel()
	}()
	if _, err := c.Run(ctx, input("")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	gone(t, pidFile)
}

// gone waits until the process named in a file is no more.
func gone(t *testing.T, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(limit); alive(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(5 * time.Millisecond) // polls until the deadline
	}
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, program, want string }{
		{"missing", "longshore-no-such-program", "executable file not found in $PATH; install it, or write its path"},
		{"missing path", filepath.Join(dir, "none"), "no such file or directory; install it, or write its path"},
		{"not executable", plain, "it is not an executable file; run chmod +x"},
		{"directory", dir, "; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Find(tt.program)
			if err == nil || !strings.Contains(err.Error(), tt.program) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to name %s and say %q", err, tt.program, tt.want)
			}
		})
	}
	t.Run("current folder", func(t *testing.T) {
		t.Chdir(dir)
		t.Setenv("PATH", ".")
		if err := os.Chmod(plain, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Find("plain"); err == nil || !strings.Contains(err.Error(), "write ./plain") {
			t.Errorf("got %v, want the way out", err)
		}
	})
}
