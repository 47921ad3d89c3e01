// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// usage is what a host holds.
type usage struct {
	goroutines, descriptors int
	heap                    uint64
}

// exceeds says that more is held than a hundred restarts may add: less than one
// thing of each kind in thirty.
func (u usage) exceeds(before usage) bool {
	return u.goroutines > before.goroutines+3 || u.descriptors > before.descriptors+3 || u.heap > before.heap+800<<10
}

func measure(t *testing.T) usage {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		open, err = os.ReadDir("/dev/fd")
	}
	if err != nil {
		t.Fatal(err)
	}
	return usage{runtime.NumGoroutine(), len(open), m.HeapAlloc}
}

// L-12, TG-10: a restart leaves nothing in the host.
func TestRestartsLeaveNothing(t *testing.T) {
	const early, late = 20, 120
	root := privateRoot(t)
	o := mode(t, "")
	o.Logger, o.Path = nil, quickPath(t)
	var ups atomic.Int64
	var before, after usage
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sup := NewSupervisor(func(ctx context.Context, n uint64) (Generation, error) {
		p, err := Start(ctx, n, o)
		if err != nil {
			return nil, err
		}
		return p, nil
	}, RestartPolicy{First: time.Millisecond, Max: time.Millisecond, Crashes: 10 * late}, Hooks{
		Up: func(_ context.Context, g Generation) error {
			switch ups.Add(1) {
			case early:
				before = measure(t)
			case late:
				// What the last ones had may be about to end.
				for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
					if after = measure(t); !after.exceeds(before) || time.Now().After(until) {
						break
					}
				}
				cancel()
				return nil
			}
			return syscall.Kill(g.PID(), syscall.SIGKILL)
		},
		Down: func(_ Generation, cause error) {
			var lost *link.LostError
			var exit *ExitError
			if !errors.As(cause, &lost) || !errors.As(cause, &exit) || exit.Exit.Signal != syscall.SIGKILL {
				t.Errorf("cause: %v", cause)
			}
		},
	})
	if err := sup.Run(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("after %d: %+v, after %d: %+v", early, before, late, after)
	if after.exceeds(before) {
		t.Errorf("after %d: %+v, after %d: %+v", early, before, late, after)
	}
	if left := leftIn(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// L-03: a plugin that falls at once opens the breaker, with its last words; an
// Optional one recovers when a good one is installed.
func TestCrashLoop(t *testing.T) {
	run := func(t *testing.T, p RestartPolicy, o func() Options, up chan<- uint64) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return NewSupervisor(func(ctx context.Context, n uint64) (Generation, error) {
			p, err := Start(ctx, n, o())
			if err != nil {
				return nil, err
			}
			return p, nil
		}, p, Hooks{Up: func(ctx context.Context, g Generation) error {
			_, err := g.Link().Configure(ctx, &transportpb.ConfigureRequest{Endpoint: "in", Generation: g.Generation(), Settings: []byte("{}")})
			if err != nil { // it has fallen before it answered
				return err
			}
			if up != nil {
				up <- g.Generation()
				if g.Generation() > 3 {
					cancel()
				}
			}
			return nil
		}}).Run(ctx)
	}
	t.Run("breaker", func(t *testing.T) {
		o := mode(t, "exits")
		began := time.Now()
		err := run(t, RestartPolicy{First: time.Millisecond}, func() Options { return o }, nil)
		var crash *CrashError
		var exit *ExitError
		if !errors.As(err, &crash) || !errors.As(err, &exit) {
			t.Fatalf("got %v", err)
		}
		t.Log(err)
		if crash.Crashes != 5 || exit.Exit.Code != 3 || crash.Since.Before(began) ||
			!strings.Contains(strings.Join(crash.Stderr, "\n"), "cannot reach the licence server") {
			t.Errorf("got %+v, %+v", crash, exit)
		}
	})
	t.Run("before the handshake", func(t *testing.T) {
		o := mode(t, "exit")
		err := run(t, RestartPolicy{}, func() Options { return o }, nil)
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(start.Output, "no license file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("optional", func(t *testing.T) {
		bad := mode(t, "exit")
		starts := 0
		up := make(chan uint64, 16)
		err := run(t, RestartPolicy{First: time.Millisecond, Crashes: 2, Retry: 10 * time.Millisecond, Optional: true}, func() Options {
			if starts++; starts == 4 {
				t.Setenv(control.EnvMode, "") // the good one is installed
			}
			return bad
		}, up)
		if err != nil {
			t.Fatal(err)
		}
		if n := <-up; n != 4 {
			t.Errorf("up with generation %d", n)
		}
	})
	t.Run("a panic's first line", func(t *testing.T) {
		o := mode(t, "goroutine-panics")
		lines := captureLog(&o)
		p := start(t, o)
		_, _ = p.Link().Configure(t.Context(), nil)
		ends(t, "it dies", p.Done())
		if err := p.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.Stderr(); len(got) == 0 || got[0] != "panic: lost my mind" {
			t.Errorf("got %q", got)
		}
		if !lines.has("ERROR", "panic: lost my mind", "generation=1", "plugin=test", "pid=") {
			t.Errorf("not in the log:\n%s", lines)
		}
	})
}

// L-08: nothing piles up, whatever is killed.
func TestFilesLeftBehind(t *testing.T) {
	rounds := func(n int) int {
		if testing.Short() {
			return max(1, n/10)
		}
		return n
	}
	t.Run("plugins killed", func(t *testing.T) {
		root := privateRoot(t)
		o := mode(t, "")
		o.Path = quickPath(t)
		for range rounds(50) {
			p, err := Start(t.Context(), 1, o)
			if err != nil {
				t.Fatal(err)
			}
			p.Kill()
			if err := p.End(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	for name, s := range map[string]syscall.Signal{"hosts killed": syscall.SIGKILL, "normal stops": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range rounds(10) { // more of them, at each step, in TestSignalsAtEveryStep
				h := startHost(t, hostSetup{quick: true})
				h.next("up")
				h.signal(s)
				h.gone()
				if left, err := os.ReadDir(h.root); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			}
		})
	}
}

// L-01: a killed host leaves nothing, at once, and the next one starts.
func TestHostIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	for range 3 {
		h := startHost(t, hostSetup{})
		h.next("flow")
		h.signal(syscall.SIGKILL)
		h.gone()
	}
}

// A stopped plugin goes with its host too: its group becomes an orphan, which
// the system tells to hang up and to continue.
func TestHostOfAStoppedPluginIsKilled(t *testing.T) {
	t.Parallel()
	h := startHost(t, hostSetup{})
	up := h.next("up")
	suspend(t, up.PID)
	h.signal(syscall.SIGKILL)
	h.gone()
}

// L-14: two hosts on one machine do not disturb each other.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	a, b := startHost(t, hostSetup{}), startHost(t, hostSetup{})
	upA, upB := a.next("up"), b.next("up")
	a.next("flow")
	b.next("flow")
	if err := syscall.Kill(upB.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := b.next("up"); e.Generation != 2 {
		t.Errorf("got %+v", e)
	}
	b.signal(syscall.SIGKILL)
	b.gone()
	if !alive(upA.PID) {
		t.Error("the other host's plugin is gone")
	}
	a.signal(syscall.SIGTERM)
	if e := a.next("end"); e.Text != "" {
		t.Errorf("the other host ended with %s", e.Text)
	}
	a.gone()
	if strings.Contains(strings.Join(a.seen, " "), "down") {
		t.Errorf("the other host: %v", a.seen)
	}
}

// L-11: processes are never looked up by a number that a file holds.
func TestForeignProcessWithThatPID(t *testing.T) {
	root := privateRoot(t)
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
	}()
	stale := filepath.Join(root, handshake.RunDirPrefix+"42")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stale, "pid"), fmt.Appendf(nil, "%d\n", sleep.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	start(t, mode(t, ""))
	if !alive(sleep.Process.Pid) {
		t.Error("the sleep was killed")
	}
	if left := leftIn(t, root); len(left) > 0 {
		t.Errorf("not swept: %v", left)
	}
}

// A record of 100 KiB arrives whole, with the attributes of its generation.
func TestLogOfAPlugin(t *testing.T) {
	o := mode(t, "logs")
	o.Endpoint = "in"
	lines := captureLog(&o)
	p := start(t, o)
	configure(t, p)
	if err := p.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !lines.has("WARN", "long record", strings.Repeat("l", 100<<10), "number=7", "plugin=test", "endpoint=in", "generation=1", "pid=") {
		t.Error("the record is not in the log")
	}
}
