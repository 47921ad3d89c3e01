// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// limit is what any command here may take; all of them end long before.
const limit = 2 * time.Minute

// sh is a command of the shell.
func sh(text string) []string { return []string{"/bin/sh", "-c", text} }

// limited is a context for one command.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// messages of every kind.
func messages() []core.Message {
	return []core.Message{
		{Name: "q", Payload: []byte("plain")},
		{Name: "q"},
		{Name: "q", Payload: []byte{0, 0xff, '\n'}, Headers: core.Headers{{Name: "b", Value: []byte{0}}, {Name: "a", Value: nil}, {Name: "b", Value: []byte("ü")}, {Name: "ключ\"", Value: []byte("x")}}},
		{Name: "q", Payload: []byte(strings.Repeat("large", 1<<18))},
	}
}

// What an injector gets, a collector can print: the form is the same.
func TestThere(t *testing.T) {
	at := conform.Place{Name: "q", Dir: t.TempDir(), Settings: []byte(`{"url":"x y"}`)}
	inject := Inject(sh(`cat >>"$LONGSHORE_CONFORM_DIR/$LONGSHORE_CONFORM_NAME"; printf %s "$LONGSHORE_CONFORM_SETTINGS" >"$LONGSHORE_CONFORM_DIR/settings"`))
	want := messages()
	for _, part := range [][]core.Message{want[:1], nil, want[1:]} {
		if err := inject(limited(t), at, part); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(at.Dir, "settings")); err != nil || string(got) != `{"url":"x y"}` {
		t.Errorf("got settings %q, %v", got, err)
	}
	collect := Collect(sh(`echo '{"ready":true}'; cat "$LONGSHORE_CONFORM_DIR/q"; exec sleep 1000`))
	got := collected(t, collect, at, len(want))
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// collected collects n messages and ends the collector then.
func collected(t *testing.T, collect func(context.Context, conform.Place, func(), func(core.Message)) error, at conform.Place, n int) (got []core.Message) {
	t.Helper()
	ctx, cancel := context.WithCancel(limited(t))
	ready := 0
	err := collect(ctx, at, func() { ready++ }, func(m core.Message) {
		if got = append(got, m); len(got) == n {
			cancel()
		}
	})
	if err != nil || ready != 1 {
		t.Fatalf("collect: %v, ready %d times; want none, once", err, ready)
	}
	return got
}

// Of a plugin that uses standard input and output, descriptor 3 is their other
// end, and it blocks as programs expect.
func TestStdio(t *testing.T) {
	stdin := pipe(t)
	inject := Inject(sh(`cat >&3; echo end >&3`))
	var read sync.WaitGroup
	var lines []string
	read.Go(func() {
		for s := bufio.NewScanner(stdin.r); len(lines) < 4 && s.Scan(); {
			lines = append(lines, s.Text())
		}
	})
	for range 2 { // the end stays open for the next one
		if err := inject(limited(t), conform.Place{Name: "q", Stdin: stdin.w}, []core.Message{{Payload: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	read.Wait()
	line := `{"headers":[],"payload":"eA=="}`
	if diff := cmp.Diff([]string{line, "end", line, "end"}, lines); diff != "" {
		t.Errorf("standard input of the plugin (-want +got):\n%s", diff)
	}

	stdout := pipe(t)
	collect := Collect(sh(`echo '{"ready":true}'; while read -r line <&3; do echo "{\"payload\":\"$line\"}"; done; exec sleep 1000`))
	if _, err := stdout.w.WriteString("eA==\neQ==\n"); err != nil {
		t.Fatal(err)
	}
	got := collected(t, collect, conform.Place{Name: "q", Stdout: stdout.r}, 2)
	if diff := cmp.Diff([]core.Message{{Name: "q", Payload: []byte("x")}, {Name: "q", Payload: []byte("y")}}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

type ends struct{ r, w *os.File }

func pipe(t *testing.T) ends {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return ends{r, w}
}

func TestInjectFails(t *testing.T) {
	large := []core.Message{{Payload: make([]byte, 1<<20)}}
	for name, tt := range map[string]struct {
		command []string
		want    string
	}{
		"status":     {sh("cat >/dev/null; echo first >&2; echo 'no such queue' >&2; exit 3"), "injector /bin/sh -c cat >/dev/null; echo first >&2; echo 'no such queue' >&2; exit 3: it exited with status 3: no such queue"},
		"not there":  {[]string{"/no/such/injector", "x"}, "injector /no/such/injector x: it cannot be started: fork/exec /no/such/injector: no such file or directory"},
		"not read":   {sh("exit 0"), "it exited with status 0 before it had read all messages"},
		"killed":     {sh("kill -9 $$"), "it was ended by signal: killed"},
		"no command": {nil, "no command is given"},
		"long line":  {sh("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1"), "it exited with status 1: " + strings.Repeat("x", maxTail)},
	} {
		t.Run(name, func(t *testing.T) {
			err := Inject(tt.command)(limited(t), conform.Place{}, large)
			var as *Error
			if !errors.As(err, &as) || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("got %v, want an *Error that says %q", err, tt.want)
			}
		})
	}
}

func TestCollectFails(t *testing.T) {
	const ready = `echo '{"ready":true}'; `
	for name, tt := range map[string]struct{ text, want string }{
		"status":       {ready + "echo 'connection lost' >&2; exit 3", "it exited with status 3: connection lost"},
		"end":          {ready, "it exited with status 0 before it was ended"},
		"not ready":    {`echo '{"payload":""}'; exec sleep 1000`, `line 1 of its output, "{\"payload\":\"\"}": it says a message before it is ready; write {"ready":true} first`},
		"no JSON":      {ready + "echo hello; exec sleep 1000", `line 2 of its output, "hello": invalid character 'h'`},
		"other field":  {ready + `echo '{"body":"x"}'; exec sleep 1000`, `json: unknown field "body"`},
		"no payload":   {ready + `echo '{"name":"x"}'; exec sleep 1000`, `payload is missing; write it in base64, "" for none`},
		"no base64":    {ready + `echo '{"payload":"~"}'; exec sleep 1000`, "payload: illegal base64 data at input byte 0; write it in base64"},
		"long header":  {ready + `echo '{"payload":"","headers":[["a","","b"]]}'; exec sleep 1000`, "headers[0] has 3 texts; write [name, value in base64]"},
		"two a line":   {ready + `echo '{"payload":""} {"payload":""}'; exec sleep 1000`, "something follows the object; write one object a line"},
		"ready within": {`echo '{"ready":true,"payload":""}'; exec sleep 1000`, "a message says ready"},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			err := Collect(sh(tt.text))(limited(t), conform.Place{}, func() {}, func(core.Message) {})
			var as *Error
			if !errors.As(err, &as) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an *Error that says %q", err, tt.want)
			}
			if time.Since(begun) > limit/2 {
				t.Error("the collector was not ended, it ended at the limit")
			}
		})
	}
}

// Nothing of a command outlives it, whatever it does with signals.
func TestEnded(t *testing.T) {
	for name, text := range map[string]string{
		"one":                `echo '{"ready":true}'; exec sleep 1000`,
		"ignores TERM":       `trap '' TERM; echo '{"ready":true}'; while :; do sleep 1000; done`,
		"child ignores TERM": `sh -c 'trap "" TERM; echo $$ >"$LONGSHORE_CONFORM_DIR/child"; while :; do sleep 1000; done' & until [ -s "$LONGSHORE_CONFORM_DIR/child" ]; do :; done; echo '{"ready":true}'; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			at := conform.Place{Dir: t.TempDir()}
			ctx, cancel := context.WithCancel(limited(t))
			pid := `echo $$ >"$LONGSHORE_CONFORM_DIR/pid"; `
			err := Collect(sh(pid+text))(ctx, at, cancel, func(core.Message) {})
			if err != nil {
				t.Errorf("got %v, want no error from a collector that was ended", err)
			}
			for _, name := range []string{"pid", "child"} {
				if b, err := os.ReadFile(filepath.Join(at.Dir, name)); err == nil {
					gone(t, name, strings.TrimSpace(string(b)))
				}
			}
		})
	}
	t.Run("injector", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(limited(t))
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		go func() {
			_, _ = r.Read(make([]byte, 1)) // it runs
			cancel(errors.New("time is up"))
		}()
		err = Inject(sh("echo waiting >&2; echo x >&3; exec sleep 1000"))(ctx, conform.Place{Stdin: w}, []core.Message{{Payload: make([]byte, 1<<20)}})
		if err == nil || !strings.Contains(err.Error(), "it was ended: time is up: waiting") {
			t.Errorf("got %v, want that it was ended and why", err)
		}
	})
}

// gone checks that a process is gone, or dead and waited for by somebody else.
func gone(t *testing.T, name, pid string) {
	t.Helper()
	n := 0
	_, _ = fmt.Sscan(pid, &n)
	for deadline := time.Now().Add(limit); n > 0 && syscall.Kill(n, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s of %s is still there", pid, name)
		}
	}
}

func TestDisconnect(t *testing.T) {
	at := conform.Place{Name: "q", Dir: "/case", Settings: []byte(`{"a":1}`)}
	if err := Disconnect(sh(`[ "$LONGSHORE_CONFORM_NAME $LONGSHORE_CONFORM_DIR $LONGSHORE_CONFORM_SETTINGS" = 'q /case {"a":1}' ]`))(limited(t), at); err != nil {
		t.Error(err)
	}
	err := Disconnect(sh("echo 'nobody is connected' >&2; exit 1"))(limited(t), at)
	if err == nil || !strings.Contains(err.Error(), "disconnect command /bin/sh -c") || !strings.HasSuffix(err.Error(), "status 1: nobody is connected") {
		t.Errorf("got %v", err)
	}
}
