// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The steps of a plugin's life, in order.
func steps() []string {
	return []string{
		"exec", "handshake", "connect", "Describe", // until here the start fails with the plugin
		"Configure", "Inspect", "Connect", "Subscribe", "load", // here it is started again
		"Close", "leash", // here the host wants its end anyway
	}
}

func isStart(step string) bool {
	return step == "exec" || step == "handshake" || step == "connect" || step == "Describe"
}

func isEnd(step string) bool { return step == "Close" || step == "leash" }

// matrixWorkers is how many cases run at once.
const matrixWorkers = 6

// slots holds one for each case that runs.
type slots chan struct{}

// idle lets others run until f has waited for something.
func (s slots) idle(f func()) {
	<-s
	defer func() { s <- struct{}{} }()
	f()
}

// stopped is for how long a host is stopped: longer than heartbeats may be missed.
const stopped = (defaultMissed + 1) * defaultHeartbeat

// Every signal to plugin and host at every step from execution to exit. Nothing
// hangs, nothing is left, and what is not the plugin's end does not end it.
func TestSignalsAtEveryStep(t *testing.T) {
	type signaled struct {
		name   string
		signal syscall.Signal
	}
	signals := []signaled{{"KILL", syscall.SIGKILL}, {"TERM", syscall.SIGTERM}, {"STOP", syscall.SIGSTOP}}
	t.Parallel()
	free := make(slots, matrixWorkers)
	var cases sync.WaitGroup
	for i, step := range steps() {
		for j, s := range signals {
			if testing.Short() && (i+j)%3 != 0 {
				continue
			}
			for victim, run := range map[string]func(*testing.T, hostSetup, slots, string, syscall.Signal){"plugin": signalPlugin, "host": signalHost} {
				cases.Go(func() {
					free <- struct{}{}
					defer func() { <-free }()
					t.Run(fmt.Sprintf("%s/%s %s", step, s.name, victim), func(t *testing.T) { run(t, hostSetup{}, free, step, s.signal) })
				})
			}
		}
	}
	cases.Wait()
}

// atStep starts a host and waits until its first plugin is at a step.
func atStep(t *testing.T, setup hostSetup, step string) (h *hostProc, release func(), pid int) {
	t.Helper()
	visit := step
	switch step {
	case "handshake", "connect":
		setup.mode = "raw"
	case "leash":
		setup.config.NoClose = true
		visit = "Close" // of the transport, which the leash calls
	}
	var once atomic.Bool
	setup.hold = func(s string) bool { return s == visit && once.CompareAndSwap(false, true) }
	h = startHost(t, setup)
	if isEnd(step) {
		h.next("flow")
		h.signal(syscall.SIGTERM)
	}
	v := h.visit()
	return h, v.Go, v.PID
}

func signalPlugin(t *testing.T, setup hostSetup, others slots, step string, signal syscall.Signal) {
	if signal == syscall.SIGSTOP && isStart(step) {
		setup.config.Start = defaultStartLimit // which ends it
	}
	h, release, pid := atStep(t, setup, step)
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
	if signal != syscall.SIGSTOP {
		release()
	} else {
		defer release()
	}
	next := func(name string) (e event) {
		if signal == syscall.SIGSTOP {
			others.idle(func() { e = h.next(name) })
			return e
		}
		return h.next(name)
	}
	// Before Serve a plugin is like any process that is told to terminate.
	dies := signal != syscall.SIGTERM || step == "exec"
	switch {
	case isEnd(step):
		if e := h.next("end"); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
	case dies && isStart(step):
		e := next("end")
		if !strings.Contains(e.Text, "start plugin test") {
			t.Errorf("the host ended with %q", e.Text)
		}
	default:
		want := uint64(1)
		if dies {
			want = 2
		}
		e := next("up")
		for e.Generation != want && dies {
			e = next("up") // the one under load was up before
		}
		if e.Generation != want {
			t.Errorf("up: generation %d, want %d", e.Generation, want)
		}
		h.next("flow")
		h.signal(syscall.SIGTERM)
		if e := h.next("end"); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
	}
	h.gone()
}

// A plugin that loses its host while it makes its socket races with its own
// leash: whoever ends the process, the directory is gone.
func TestHostIsKilledAtExec(t *testing.T) {
	t.Parallel()
	for i := range 30 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { signalHost(t, hostSetup{quick: true}, nil, "exec", syscall.SIGKILL) })
	}
}

func signalHost(t *testing.T, setup hostSetup, others slots, step string, signal syscall.Signal) {
	h, release, pid := atStep(t, setup, step)
	h.signal(signal)
	switch signal {
	case syscall.SIGKILL:
		if step == "exec" {
			release() // nothing of the SDK runs yet: the plugin has to come to Serve
		}
		h.gone()
		release()
	case syscall.SIGTERM:
		if e := h.next("end"); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
		h.gone()
		release()
	case syscall.SIGSTOP:
		others.idle(func() {
			time.Sleep(stopped)
			if step != "leash" && !alive(pid) { // which is dropped by then
				t.Error("the plugin died")
			}
			h.signal(syscall.SIGCONT)
			release()
		})
		if !isEnd(step) {
			if e := h.next("up"); e.Generation != 1 || e.PID != pid {
				t.Errorf("up: %+v, want generation 1 in process %d", e, pid)
			}
			h.next("flow")
			h.signal(syscall.SIGTERM)
		}
		if e := h.next("end"); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
		h.gone()
	}
}
