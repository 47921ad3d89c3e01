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

// matrixWorkers is how many cases run at once: they mostly wait.
const matrixWorkers = 6

// Every signal to plugin and host at every step from execution to exit. Nothing
// hangs, nothing is left, and what is not the plugin's end does not end it.
func TestSignalsAtEveryStep(t *testing.T) {
	type signaled struct {
		name   string
		signal syscall.Signal
	}
	signals := []signaled{{"KILL", syscall.SIGKILL}, {"TERM", syscall.SIGTERM}, {"STOP", syscall.SIGSTOP}}
	slots := make(chan struct{}, matrixWorkers)
	var cases sync.WaitGroup
	for i, step := range steps() {
		for j, s := range signals {
			if testing.Short() && (i+j)%3 != 0 {
				continue
			}
			for victim, run := range map[string]func(*testing.T, string, syscall.Signal){"plugin": signalPlugin, "host": signalHost} {
				cases.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					t.Run(fmt.Sprintf("%s/%s %s", step, s.name, victim), func(t *testing.T) { run(t, step, s.signal) })
				})
			}
		}
	}
	cases.Wait()
}

// atStep starts a host and waits until its first plugin is at a step.
func atStep(t *testing.T, step string, c hostConfig) (h *hostProc, release func(), pid int) {
	t.Helper()
	mode, visit := "", step
	switch step {
	case "handshake", "connect":
		mode = "raw"
	case "leash":
		c.NoClose = true
		visit = "Close" // of the transport, which the leash calls
	}
	c.Heartbeat = 200 * time.Millisecond
	var once atomic.Bool
	h = startHost(t, hostSetup{config: c, mode: mode, hold: func(s string) bool {
		return s == visit && once.CompareAndSwap(false, true)
	}})
	if isEnd(step) {
		h.next("flow", 20*time.Second)
		h.signal(syscall.SIGTERM)
	}
	v := h.visit()
	return h, v.Go, v.PID
}

func signalPlugin(t *testing.T, step string, signal syscall.Signal) {
	c := hostConfig{}
	if signal == syscall.SIGSTOP && isStart(step) {
		c.Start = 1500 * time.Millisecond
	}
	h, release, pid := atStep(t, step, c)
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
	if signal != syscall.SIGSTOP {
		release()
	} else {
		defer release()
	}
	// Before Serve a plugin is like any process that is told to terminate.
	dies := signal != syscall.SIGTERM || step == "exec"
	switch {
	case isEnd(step):
		if e := h.next("end", 5*time.Second); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
	case dies && isStart(step):
		e := h.next("end", 5*time.Second)
		if !strings.Contains(e.Text, "start plugin test") {
			t.Errorf("the host ended with %q", e.Text)
		}
	default:
		want := uint64(1)
		if dies {
			want = 2
		}
		e := h.next("up", 10*time.Second)
		for e.Generation != want && dies {
			e = h.next("up", 10*time.Second) // the one under load was up before
		}
		if e.Generation != want {
			t.Errorf("up: generation %d, want %d", e.Generation, want)
		}
		h.next("flow", 20*time.Second)
		h.signal(syscall.SIGTERM)
		if e := h.next("end", 5*time.Second); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
	}
	h.gone(2 * time.Second)
}

// A plugin that loses its host while it makes its socket races with its own
// leash: whoever ends the process, the directory is gone.
func TestHostIsKilledAtExec(t *testing.T) {
	for i := range 30 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { signalHost(t, "exec", syscall.SIGKILL) })
	}
}

func signalHost(t *testing.T, step string, signal syscall.Signal) {
	h, release, pid := atStep(t, step, hostConfig{})
	h.signal(signal)
	switch signal {
	case syscall.SIGKILL:
		if step == "exec" {
			release() // nothing of the SDK runs yet: the plugin has to come to Serve
		}
		h.gone(2 * time.Second)
		release()
	case syscall.SIGTERM:
		if e := h.next("end", 5*time.Second); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
		h.gone(2 * time.Second)
		release()
	case syscall.SIGSTOP:
		time.Sleep(1500 * time.Millisecond) // longer than its heartbeats may be missed
		if step != "leash" && !alive(pid) { // which is dropped by then
			t.Fatal("the plugin died")
		}
		h.signal(syscall.SIGCONT)
		release()
		if !isEnd(step) {
			if e := h.next("up", 10*time.Second); e.Generation != 1 || e.PID != pid {
				t.Errorf("up: %+v, want generation 1 in process %d", e, pid)
			}
			h.next("flow", 20*time.Second)
			h.signal(syscall.SIGTERM)
		}
		if e := h.next("end", 5*time.Second); e.Text != "" {
			t.Errorf("the host ended with %s", e.Text)
		}
		h.gone(2 * time.Second)
	}
}
