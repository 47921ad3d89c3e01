// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// limit bounds a test on a busy machine.
const limit = 2 * time.Minute

// lines is a log's text.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs the plugin as a process.
func start(ctx context.Context, t *testing.T, b *memtest.Bench, log *lines) (*process.Process, error) {
	t.Helper()
	p, err := process.Start(ctx, 1, process.Options{
		Name: "memory", Path: b.Path, Env: []string{memory.EnvAddress}, Endpoint: "mem",
		Logger: slog.New(slog.NewTextHandler(log, nil)), StartLimit: limit,
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := p.End(ctx); err != nil {
			t.Errorf("end the plugin: %v", err)
		}
	})
	return p, nil
}

// connect configures and connects it.
func connect(ctx context.Context, t *testing.T, p *process.Process, set settings.Settings) *transportpb.ConnectResponse {
	t.Helper()
	raw, err := pluginapi.EncodeSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Link().Configure(ctx, &transportpb.ConfigureRequest{Endpoint: "mem", Generation: 1, Settings: raw})
	if err != nil || r.GetFault() != nil {
		t.Fatalf("configure: %v, %v", err, r.GetFault())
	}
	if _, err := p.Link().Inspect(ctx, &transportpb.InspectRequest{}); err != nil {
		t.Fatal(err)
	}
	c, err := p.Link().Connect(ctx, &transportpb.ConnectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A plugin can be stopped from its first moment on, by its process id.
func TestPausesBeforeTheHandshake(t *testing.T) {
	b := memtest.Start(t)
	t.Setenv(memory.EnvAddress, b.Address)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	exec, describe := b.PauseAt("", memory.AtExec), b.PauseAt("", memory.AtDescribe)
	var log lines
	type started struct {
		p   *process.Process
		err error
	}
	done := make(chan started, 1)
	go func() {
		p, err := start(ctx, t, b, &log)
		done <- started{p, err}
	}()
	first, err := exec.Reached(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exec.Release()
	second, err := describe.Reached(ctx)
	if err != nil {
		t.Fatal(err)
	}
	describe.Release()
	s := <-done
	if s.err != nil {
		t.Fatal(s.err)
	}
	if first.PID != s.p.PID() || second.PID != s.p.PID() {
		t.Errorf("stopped %d and %d, started %d", first.PID, second.PID, s.p.PID())
	}

	// One that is killed there fails the start at once.
	again := b.PauseAt("", memory.AtExec)
	go func() {
		p, err := start(ctx, t, b, &log)
		done <- started{p, err}
	}()
	at, err := again.Reached(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(at.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s := <-done; s.err == nil {
		t.Error("a killed plugin was started")
	}
}

// The ways a plugin process ends on command, and what is heard of it.
func TestEndsOnCommand(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(ctx context.Context, c *memory.Client) error
		code   int
		signal syscall.Signal
		stderr string
	}{
		{"exit", func(ctx context.Context, c *memory.Client) error { return c.Exit(ctx, 3) }, 3, 0, ""},
		{"panic", func(ctx context.Context, c *memory.Client) error { return c.Panic(ctx, memory.PanicGoroutine) }, 2, 0, "panic on command"},
		{"kill", func(_ context.Context, c *memory.Client) error { return c.Kill() }, -1, syscall.SIGKILL, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := memtest.Start(t)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var log lines
			p, err := start(ctx, t, b, &log)
			if err != nil {
				t.Fatal(err)
			}
			session := connect(ctx, t, p, b.Settings)
			c, err := b.Client(ctx, "mem")
			if err != nil {
				t.Fatal(err)
			}
			if string(session.GetResume()) != c.Session() || c.PID() != p.PID() || c.Generation() != 1 {
				t.Errorf("resume %q, client %+v", session.GetResume(), c)
			}
			if err := tt.end(ctx, c); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Done():
			case <-ctx.Done():
				t.Fatal("it lives on")
			}
			e := p.Exit()
			if signal, _ := e.Signal.(syscall.Signal); e.Code != tt.code || signal != tt.signal {
				t.Errorf("exit %+v", e)
			}
			if err := p.End(ctx); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.Stderr(), "\n"); !strings.Contains(got, tt.stderr) {
				t.Errorf("stderr %q", got)
			}
		})
	}
}

// Noise on every stream reaches the host's log and disturbs nothing.
func TestNoise(t *testing.T) {
	b := memtest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var log lines
	p, err := start(ctx, t, b, &log)
	if err != nil {
		t.Fatal(err)
	}
	connect(ctx, t, p, b.Settings)
	c, err := b.Client(ctx, "mem")
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"stdout", "stderr", "log"} {
		if err := c.Noise(ctx, stream, "noise on "+stream+"\n", 3); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Link().Close(ctx, &transportpb.CloseRequest{Limit: int64(limit)}); err != nil {
		t.Fatal(err)
	}
	if err := p.End(ctx); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"stdout", "stderr", "log"} {
		if !strings.Contains(log.String(), "noise on "+stream) {
			t.Errorf("nothing of %s in the log: %s", stream, log.String())
		}
	}
}

// L-05: settings that the plugin refuses name their field.
func TestRefusedSettings(t *testing.T) {
	b := memtest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var log lines
	p, err := start(ctx, t, b, &log)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Link().Configure(ctx, &transportpb.ConfigureRequest{Endpoint: "mem", Generation: 1, Settings: []byte(`{"address":"x","odd":1}`)})
	if err != nil || r.GetFault() == nil || r.GetFault().GetDiagnostics()[0].GetPath() != "odd" {
		t.Errorf("got %v, %v", r, err)
	}
	b.Deny("mem", memory.AtConnect, 1, &core.Fault{Code: core.FaultDenied, Message: "no entry"})
	raw, err := pluginapi.EncodeSettings(b.Settings)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Link().Configure(ctx, &transportpb.ConfigureRequest{Endpoint: "mem", Generation: 1, Settings: raw}); err != nil || r.GetFault() != nil {
		t.Fatalf("got %v, %v", r, err)
	}
	if _, err := p.Link().Inspect(ctx, &transportpb.InspectRequest{}); err != nil {
		t.Fatal(err)
	}
	var f *core.Fault
	if _, err := p.Link().Connect(ctx, &transportpb.ConnectRequest{}); !errors.As(err, &f) || f.Code != core.FaultDenied {
		t.Errorf("connect: %v", err)
	}
}
