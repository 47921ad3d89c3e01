// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// privateRoot lets private directories be made in a folder of the test's own.
func privateRoot(t *testing.T) string {
	t.Helper()
	root := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", root)
	return root
}

func TestStartServesAndEnds(t *testing.T) {
	root := privateRoot(t)
	o := mode(t, "")
	o.EndLimit = patience
	p := start(t, o)
	if left := leftIn(t, root); len(left) > 0 {
		t.Errorf("on disk while it runs: %v", left)
	}
	if got := p.Description().GetName(); got != "test" {
		t.Errorf("name: got %q", got)
	}
	pid := p.PID()
	began := time.Now()
	if err := p.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took >= patience {
		t.Errorf("the end took %v: the leash does not end it", took)
	}
	if alive(pid) {
		t.Error("the process lives")
	}
	if exit := p.Exit(); exit.Code != 0 || exit.Signal != nil {
		t.Errorf("exit: %v", exit)
	}
}

// L-04 and the rest of what a plugin can do wrong between execution and
// Describe. Each leaves neither process nor file.
func TestStartFails(t *testing.T) {
	tests := []struct {
		name   string
		mode   string
		stage  Stage
		reason string
		output string
		waits  bool // for the start limit: nothing else tells
	}{
		{"L-04 a long line before the handshake", "flood", StageHandshake, "before its handshake", strings.Repeat("x", 200), true},
		{"L-04 no handshake", "garbage", StageHandshake, "before its handshake", strings.Repeat("no handshake ", 16)[:200], true},
		{"exit before the handshake", "exit", StageHandshake, "it exited with status 3 before its handshake", "no license file", false},
		{"exit behind the handshake", "gone", StageConnect, "", "", false},
		{"silent", "silent", StageHandshake, "before its handshake", "", true},
		{"stdout closed", "closes-stdout", StageHandshake, "closed its stdout", "", false},
		{"L-10 another protocol version", "version", StageHandshake, "version 99 of the plugin protocol", "", false},
		{"another go-plugin", "core", StageHandshake, "version 7 of go-plugin", "", false},
		{"another protocol", "netrpc", StageHandshake, `"netrpc"`, "", false},
		{"another network", "tcp", StageHandshake, "listens on tcp", "", false},
		{"socket outside the private directory", "outside", StageHandshake, "lies outside", "", false},
		{"TG-23 mute behind the connection", "mute", StageConnect, "before it took the connection", "", true},
		{"another transport", "other-name", StageDescribe, `transport "other"`, "", false},
		{"panic in Describe", "panics", StageDescribe, "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := privateRoot(t)
			server, visited := visitors(t)
			t.Setenv(control.EnvArg, shortDir(t))
			o := mode(t, tt.mode)
			o.Endpoint = "in"
			if tt.waits {
				o.StartLimit = 500 * time.Millisecond
			}
			var start *StartError
			for ; ; o.StartLimit *= 2 { // which may be too short for it to come so far
				began := time.Now()
				_, err := Start(t.Context(), 1, o)
				took := time.Since(began)
				if !errors.As(err, &start) {
					t.Fatalf("got %v, want a StartError", err)
				}
				t.Log(err)
				if tt.waits != (took >= o.StartLimit) {
					t.Errorf("took %v of %v", took, o.StartLimit)
				}
				if !tt.waits || o.StartLimit > patience || start.Stage == tt.stage && (tt.output == "" || start.Output != "") && len(server.PIDs()) > 0 {
					break
				}
			}
			if start.Stage != tt.stage && tt.mode != "gone" { // it dies while the host connects
				t.Errorf("stage: got %s, want %s", start.Stage, tt.stage)
			}
			if !strings.Contains(start.Reason, tt.reason) {
				t.Errorf("reason: got %q, want %q in it", start.Reason, tt.reason)
			}
			if start.Path != o.Path || start.Endpoint != "in" || start.Name != "test" {
				t.Errorf("got %+v", start)
			}
			if tt.output != "" && start.Output != tt.output {
				t.Errorf("output: got %q, want %q", start.Output, tt.output)
			}
			if left := leftIn(t, root); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			server.Close()
			for _, pid := range visited() {
				if alive(pid) {
					t.Errorf("process %d lives", pid)
				}
			}
		})
	}
}

// visitors runs a control server that holds nobody, and tells who came.
func visitors(t *testing.T) (*control.Server, func() []int) {
	t.Helper()
	s, err := control.Listen(filepath.Join(shortDir(t), "control"), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Setenv(control.EnvControl, s.Path)
	return s, func() []int {
		pids := s.PIDs()
		if len(pids) == 0 {
			t.Error("no plugin ran")
		}
		return pids
	}
}

// L-04: what is printed beside the handshake is a warning.
func TestNoiseIsAWarning(t *testing.T) {
	tests := []struct {
		name, mode string
		want       []string
	}{
		{"before the handshake", "noise", []string{"Welcome to the banner library"}},
		{"while it serves", "noise-after", []string{"printed by fmt", "printed to stderr", "written to descriptor 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := mode(t, tt.mode)
			lines := captureLog(&o)
			p := start(t, o)
			configure(t, p)
			if err := p.End(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !lines.has("WARN", want) {
					t.Errorf("no warning with %q in:\n%s", want, lines)
				}
			}
		})
	}
}

func configure(t *testing.T, p *Process) {
	t.Helper()
	_, err := p.Link().Configure(t.Context(), &transportpb.ConfigureRequest{
		Endpoint: "in", Generation: p.Generation(), Settings: []byte("{}"), Stdio: p.options.Stdio != nil,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A plugin needs the Transport service only; one made with go-plugin alone has
// its os.Stdout read.
func TestPluginsOfOthers(t *testing.T) {
	for _, name := range []string{"bare", "chatty"} {
		t.Run(name, func(t *testing.T) {
			p := start(t, mode(t, name))
			done := make(chan struct{})
			go func() {
				defer close(done)
				configure(t, p)
			}()
			ends(t, "Configure returns", done)
			if err := p.End(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// L-09: a grandchild that holds the pipes neither hides a death nor outlives
// it; one that ran away to a session of its own at least does not hide it.
func TestGrandchildHoldsThePipes(t *testing.T) {
	for _, name := range []string{"grandchild", "runaway"} {
		for _, how := range []string{"stop", "kill -9"} {
			t.Run(name+" "+how, func(t *testing.T) {
				file := filepath.Join(shortDir(t), "pid")
				t.Setenv(control.EnvArg, file)
				p := start(t, mode(t, name))
				child := readPID(t, file)
				t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })

				// The grandchild would hold the pipes for ten minutes.
				if how == "kill -9" {
					if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					ends(t, "the death is noticed", p.Done())
				}
				began := time.Now()
				if err := p.End(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > patience {
					t.Errorf("the end took %v", took)
				}
				if name == "grandchild" {
					eventually(t, "the grandchild is gone", func() bool { return !alive(child) })
				}
			})
		}
	}
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, "the pid is written", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(text))
		return pid > 0
	})
	return pid
}

// TG-15: a stop during a start ends it at once.
func TestStartIsStopped(t *testing.T) {
	root := privateRoot(t)
	for _, name := range []string{"silent", "mute"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		o := mode(t, name)
		o.StartLimit = 2 * patience
		_, err := Start(ctx, 1, o)
		cancel()
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(start.Reason, "stopped") {
			t.Errorf("%s: got %v", name, err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("%s: took %v", name, took)
		}
	}
	if left := leftIn(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// L-05: a configuration that is refused, again and again, leaves nothing.
func TestRefusedConfigurationLeavesNothing(t *testing.T) {
	root := privateRoot(t)
	server, visited := visitors(t)
	o := mode(t, "refuses")
	o.Path = quickPath(t)
	for range 50 {
		p, err := Start(t.Context(), 1, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Link().Configure(t.Context(), &transportpb.ConfigureRequest{Settings: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.GetFault().GetDiagnostics(); len(got) != 1 || got[0].GetPath() != "url" {
			t.Fatalf("got %v", r)
		}
		if err := p.End(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	pids := visited()
	if len(pids) != 50 {
		t.Errorf("%d processes", len(pids))
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d lives", pid)
		}
	}
	if left := leftIn(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A transport that is deaf to its context, and a stopped process, are ended by
// force.
func TestEndByForce(t *testing.T) {
	t.Run("stopped", func(t *testing.T) {
		o := mode(t, "")
		o.EndLimit = 200 * time.Millisecond
		p := start(t, o)
		suspend(t, p.PID())
		if err := p.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Exit().Signal != syscall.SIGKILL {
			t.Errorf("exit: %v", p.Exit())
		}
	})
	t.Run("impatient", func(t *testing.T) {
		o := mode(t, "")
		o.EndLimit = 2 * patience
		p := start(t, o)
		suspend(t, p.PID())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := p.End(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("took %v", took)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		o := mode(t, "deaf")
		o.EndLimit = patience
		p := start(t, o)
		configure(t, p)
		if _, err := p.Link().Connect(t.Context(), &transportpb.ConnectRequest{}); err != nil {
			t.Fatal(err)
		}
		if err := p.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Exit().Signal != nil {
			t.Errorf("it did not end by itself: %v", p.Exit())
		}
	})
}

// TG-1: the limit is the protocol's in both directions, not gRPC's 4 MiB.
func TestLargeMessages(t *testing.T) {
	p := start(t, mode(t, "large"))
	configure(t, p)
	if _, err := p.Link().Connect(t.Context(), &transportpb.ConnectRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{3 << 20, 5 << 20, frame.MaxPayload - 100} {
		r, err := p.Link().Request(t.Context(), &transportpb.RequestRequest{
			Outgoing: &transportpb.Outgoing{Id: 1, Name: "echo", Payload: make([]byte, size)}, Timeout: int64(patience),
		})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := len(r.GetReply().GetPayload()); got != size {
			t.Errorf("got %d bytes, want %d", got, size)
		}
	}
}

// BenchmarkStart is a start until Describe is answered, and the end.
func BenchmarkStart(b *testing.B) {
	o := Options{Name: "test", Path: pluginPath()}
	for b.Loop() {
		p, err := Start(b.Context(), 1, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.End(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// suspend stops a process and waits until it is.
func suspend(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is stopped", func() bool { return state(pid) == "T" })
}

// L-13: a plugin sees the allow-list, what is passed on by name, and what the
// start needs; neither secrets nor proxies.
func TestEnvironment(t *testing.T) {
	file := filepath.Join(shortDir(t), "env")
	t.Setenv(control.EnvArg, file)
	t.Setenv("SECRET", "x")
	t.Setenv("all_proxy", "socks5://127.0.0.1:1")
	t.Setenv("LANG", "broken")
	t.Setenv("PASSED_ON", "yes")
	t.Setenv(handshake.CookieKey, "not the cookie")
	o := mode(t, "environment")
	o.Env = append(o.Env, "PASSED_ON", "NOT_SET", handshake.CookieKey)
	configure(t, start(t, o))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, "=")
		if _, twice := got[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		got[name] = value
	}
	want := map[string]string{
		"LANG": "broken", "PASSED_ON": "yes", "PATH": os.Getenv("PATH"), handshake.CookieKey: handshake.CookieValue,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %q, want %q", name, got[name], value)
		}
	}
	for _, name := range []string{"SECRET", "all_proxy", "NOT_SET", envBin, handshake.EnvStdio} {
		if value, ok := got[name]; ok {
			t.Errorf("%s=%s is passed on", name, value)
		}
	}
}
