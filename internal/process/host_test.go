// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// hostConfig is what a host process is told.
type hostConfig struct {
	Stdio   bool
	NoClose bool // End without a Close before
	Start   time.Duration
	End     time.Duration
}

// event is what a host process tells, on descriptor 3.
type event struct {
	Name       string
	Generation uint64
	PID        int
	Text       string
}

// hostMain is a host of one endpoint, as package host is one: it supervises the
// plugin under test, reads and acks without an end, and stops on a signal.
func hostMain() int {
	syscall.CloseOnExec(3)
	tell := json.NewEncoder(os.NewFile(3, "events"))
	var lock sync.Mutex
	say := func(e event) {
		lock.Lock()
		defer lock.Unlock()
		_ = tell.Encode(e)
	}
	var c hostConfig
	if err := json.Unmarshal([]byte(os.Getenv(envHost)), &c); err != nil {
		say(event{Name: "end", Text: err.Error()})
		return 2
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	o := Options{
		Name: "test", Path: pluginPath(), Env: control.Env(), Endpoint: "in",
		StartLimit: c.Start, EndLimit: c.End,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if c.Stdio {
		o.Stdio = &Stdio{In: os.Stdin, Out: os.Stdout}
	}
	h := &host{config: c, say: say}
	sup := NewSupervisor(func(ctx context.Context, n uint64) (Generation, error) {
		p, err := Start(ctx, n, o)
		if err != nil {
			return nil, err
		}
		say(event{Name: "start", Generation: n, PID: p.PID()})
		return p, nil
	}, RestartPolicy{First: 10 * time.Millisecond}, Hooks{
		Up: h.up,
		Down: func(g Generation, cause error) {
			say(event{Name: "down", Generation: g.Generation(), PID: g.PID(), Text: cause.Error()})
		},
	})
	run, end := context.WithCancel(context.Background())
	defer end()
	first := make(chan struct{})
	go func() {
		defer close(first)
		<-stop.Done()
		say(event{Name: "stop"})
		h.close()
		end()
	}()
	err := sup.Run(run)
	e := event{Name: "end"}
	if err != nil {
		e.Text = err.Error()
	}
	say(e)
	return 0
}

// host is what a host process knows of its endpoint.
type host struct {
	config hostConfig
	say    func(event)

	mu      sync.Mutex
	current Generation
}

func (h *host) up(ctx context.Context, g Generation) error {
	h.mu.Lock()
	h.current = g
	h.mu.Unlock()
	l := g.Link()
	reg := &transportpb.Registration{Name: "numbers"}
	r, err := l.Configure(ctx, &transportpb.ConfigureRequest{Settings: []byte("{}"), Generation: g.Generation(), Stdio: h.config.Stdio})
	if err == nil && r.GetFault() != nil {
		err = errors.New(r.GetFault().GetMessage())
	}
	if err == nil {
		_, err = l.Inspect(ctx, &transportpb.InspectRequest{Registrations: []*transportpb.Registration{reg}})
	}
	if err == nil {
		_, err = l.Connect(ctx, &transportpb.ConnectRequest{})
	}
	if err != nil {
		return err
	}
	life, cancel := context.WithCancel(context.Background())
	go func() {
		<-g.Done()
		cancel()
	}()
	s, err := l.Subscribe(life)
	if err != nil {
		return err
	}
	if err := s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: reg}}); err != nil {
		return err
	}
	started := make(chan error, 1)
	go h.consume(g, s, started)
	select {
	case err = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		h.say(event{Name: "up", Generation: g.Generation(), PID: g.PID()})
	}
	return err
}

// consume acks everything and tells when a good deal has come.
func (h *host) consume(g Generation, s interface {
	Send(r *frame.SubscribeRequest) error
	Recv(r *frame.SubscribeResponse) error
}, started chan<- error,
) {
	var r frame.SubscribeResponse
	if err := s.Recv(&r); err != nil {
		started <- err
		return
	}
	started <- s.Send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: 64, Bytes: 1 << 20}})
	told := false
	for {
		r = frame.SubscribeResponse{}
		if err := s.Recv(&r); err != nil {
			return
		}
		if r.Deliveries == nil {
			continue
		}
		first, n := r.Deliveries.Items[0].ID, uint64(len(r.Deliveries.Items))
		r.Deliveries.Release()
		err := s.Send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{{First: first, Count: n, Kind: core.VerdictAck}}})
		if err != nil {
			return
		}
		if first > 2000 && !told {
			told = true
			h.say(event{Name: "flow", Generation: g.Generation()})
		}
	}
}

// close is what comes before End.
func (h *host) close() {
	h.mu.Lock()
	g := h.current
	h.mu.Unlock()
	if g == nil || h.config.NoClose {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = g.Link().Close(ctx, &transportpb.CloseRequest{Limit: int64(time.Second)})
}

// hostProc is a host process under test.
type hostProc struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan event
	seen   []string
	stderr *capture
	root   string
	server *control.Server
	waited chan struct{}
}

// hostSetup is how a host process is started.
type hostSetup struct {
	config hostConfig
	mode   string
	quick  bool // the plugin is that of quickPath
	hold   func(step string) bool
	attach func(*exec.Cmd) // to a terminal, for instance
}

// startHost starts a host process with a folder, an environment and a control
// server of its own.
func startHost(t *testing.T, s hostSetup) *hostProc {
	t.Helper()
	if s.hold == nil {
		s.hold = func(string) bool { return false }
	}
	if s.config.Start == 0 {
		s.config.Start = patience
	}
	if s.config.End == 0 {
		s.config.End = 500 * time.Millisecond
	}
	h := &hostProc{t: t, events: make(chan event, 1024), stderr: &capture{}, root: shortDir(t), waited: make(chan struct{})}
	server, err := control.Listen(filepath.Join(shortDir(t), "control"), s.hold)
	if err != nil {
		t.Fatal(err)
	}
	h.server = server
	config, err := json.Marshal(s.config)
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h.cmd = exec.Command(executable)
	h.cmd.Env = append(os.Environ(),
		envHost+"="+string(config), control.EnvMode+"="+s.mode, control.EnvControl+"="+server.Path,
		"XDG_RUNTIME_DIR="+h.root, "TMPDIR="+h.root,
	)
	if s.quick {
		h.cmd.Env = append(h.cmd.Env, envBin+"="+filepath.Dir(quickPath(t)))
	}
	h.cmd.ExtraFiles = []*os.File{w}
	h.cmd.Stderr = h.stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.cmd.WaitDelay = 5 * time.Second
	if s.attach != nil {
		s.attach(h.cmd)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() {
		defer close(h.events)
		defer r.Close()
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				h.events <- e
			}
		}
	}()
	go func() {
		defer close(h.waited)
		_ = h.cmd.Wait()
	}()
	t.Cleanup(h.cleanUp)
	return h
}

func (h *hostProc) cleanUp() {
	_ = h.cmd.Process.Signal(syscall.SIGCONT)
	_ = h.cmd.Process.Kill()
	<-h.waited
	h.server.Close()
	for e := range h.events {
		h.seen = append(h.seen, fmt.Sprint(e))
	}
	if h.t.Failed() {
		h.t.Logf("events: %q\nstderr of the host:\n%s", h.seen, h.stderr)
	}
}

// next waits for an event, and returns it.
func (h *hostProc) next(name string) event {
	h.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case e, ok := <-h.events:
			if !ok {
				h.t.Fatalf("the host ended before it told %q", name)
			}
			h.seen = append(h.seen, fmt.Sprint(e))
			if e.Name == name {
				return e
			}
			if e.Name == "end" {
				h.t.Fatalf("the host ended before it told %q: %s", name, e.Text)
			}
		case <-timer.C:
			h.t.Fatalf("not within %v: event %q", patience, name)
		}
	}
}

// visit waits for a plugin at a step.
func (h *hostProc) visit() *control.Visit {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := h.server.Next(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func (h *hostProc) signal(s syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatal(err)
	}
}

// gone waits until neither host nor plugin nor file is left.
func (h *hostProc) gone() {
	h.t.Helper()
	ends(h.t, "the host has ended", h.waited)
	eventually(h.t, "nothing is left", func() bool {
		for _, pid := range h.server.PIDs() {
			if alive(pid) {
				return false
			}
		}
		return len(leftIn(h.t, h.root)) == 0
	})
	if strings.Contains(h.stderr.String(), "level=ERROR") {
		h.t.Error("the host's log has errors")
	}
}
