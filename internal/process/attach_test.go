// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// byHand starts the plugin under test as its author would, and returns the line
// that it tells to export.
func byHand(t *testing.T, args ...string) (cmd *exec.Cmd, line string) {
	t.Helper()
	cmd = exec.Command(pluginPath(), append([]string{"--listen"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+shortDir(t))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said := bufio.NewScanner(stderr)
	for said.Scan() {
		if line, ok := strings.CutPrefix(said.Text(), "export "+handshake.EnvReattach+"="); ok {
			go func() {
				for said.Scan() {
				}
			}()
			return cmd, line
		}
	}
	t.Fatal("the plugin tells no address")
	return nil, ""
}

// TG-17, TG-24: a plugin started by hand is dialed, watched by no heartbeat and
// never killed; hosts come and go.
func TestReattach(t *testing.T) {
	cmd, line := byHand(t)
	t.Setenv(handshake.EnvReattach, "nothing=/x,"+line)
	for n := uint64(1); n <= 2; n++ {
		o := mode(t, "")
		p, err := Start(t.Context(), n, o)
		if err != nil {
			t.Fatal(err)
		}
		if every, _, _ := p.Heartbeats(); every != 0 || p.PID() != 0 {
			t.Errorf("heartbeats %v, pid %d", every, p.PID())
		}
		configure(t, p)
		if _, err := p.Link().Connect(t.Context(), &transportpb.ConnectRequest{}); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			p.Kill()
			<-p.Done()
		}
		if err := p.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !alive(cmd.Process.Pid) {
			t.Fatal("the plugin was killed")
		}
	}

	// The end of a debugged process is the end of its generation.
	p, err := Start(t.Context(), 3, mode(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ends(t, "the end is noticed", p.Done())
	if err := p.End(t.Context()); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the plugin ended with %v", err)
	}
	_, path, _ := strings.Cut(line, "=")
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", filepath.Dir(path))
	}
}

func TestReattachment(t *testing.T) {
	tests := []struct {
		env, name, endpoint string
		want                string
		ok                  bool
	}{
		{"", "mqtt", "in", "", false},
		{"mqtt=/a", "mqtt", "in", "/a", true},
		{"mqtt=/a", "mqtt", "", "/a", true},
		{"mqtt=/a, in=/b", "mqtt", "in", "/b", true},
		{"zmq=/a", "mqtt", "in", "", false},
		{"mqtt", "mqtt", "in", "", false},
		{"=/a", "mqtt", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.env, func(t *testing.T) {
			t.Setenv(handshake.EnvReattach, tt.env)
			got, ok := reattachment(Options{Name: tt.name, Endpoint: tt.endpoint})
			if got != tt.want || ok != tt.ok {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

func TestReattachRefuses(t *testing.T) {
	gone := filepath.Join(shortDir(t), "socket")
	for _, address := range []string{"relative", "unix:relative", "192.0.2.1:80", "example.org:80", gone, ""} {
		t.Setenv(handshake.EnvReattach, "test="+address)
		o := mode(t, "")
		o.StartLimit = 500 * time.Millisecond
		_, err := Start(t.Context(), 1, o)
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(err.Error(), handshake.EnvReattach) {
			t.Errorf("%q: got %v", address, err)
		}
	}
}

// A binary that is started by hand says what it is.
func TestByHand(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		out  string
		err  string
	}{
		{"nothing", nil, 1, "", "is a transport plugin of longshore"},
		{"describe", []string{"--describe"}, 0, `"name": "test"`, ""},
		{"unknown", []string{"--help"}, 1, "", "--listen"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, pluginPath(), tt.args...)
			var out, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &stderr
			cmd.Env = []string{control.EnvMode + "="}
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(stderr.String(), tt.err) {
				t.Errorf("status %d\n%s\n%s", got, out.String(), stderr.String())
			}
			if strings.Count(stderr.String(), "\n") > 1 {
				t.Error("more than one line")
			}
		})
	}
}
