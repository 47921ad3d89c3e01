// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const envJob = "LONGSHORE_TEST_JOB" // what envHost is for the shell's job

// shellMain is the session leader on a terminal, as a shell is: it starts a
// host in the background and brings it to the foreground upon SIGUSR1.
func shellMain() int {
	signal.Ignore(syscall.SIGTTOU)
	foreground := make(chan os.Signal, 1)
	signal.Notify(foreground, syscall.SIGUSR1)
	executable, err := os.Executable()
	if err != nil {
		return 2
	}
	job := exec.Command(executable)
	job.Env = append(os.Environ(), envHost+"="+os.Getenv(envJob))
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.ExtraFiles = []*os.File{os.NewFile(3, "events")}
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := job.Start(); err != nil {
		return 2
	}
	group := job.Process.Pid
	go func() {
		<-foreground
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group)
		_ = syscall.Kill(-group, syscall.SIGCONT)
	}()
	_ = job.Wait()
	return 0
}

// terminal is a pseudo-terminal with somebody typing.
type terminal struct {
	t     *testing.T
	ptmx  *os.File
	tty   *os.File
	lines chan string
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	m := &terminal{t: t, ptmx: ptmx, tty: tty, lines: make(chan string, 1024)}
	go func() {
		defer close(m.lines)
		lines := bufio.NewScanner(ptmx)
		for lines.Scan() {
			m.lines <- strings.TrimRight(lines.Text(), "\r")
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = ptmx.Close()
		for range m.lines {
		}
	})
	return m
}

// attach makes it the controlling terminal of a command's new session.
func (m *terminal) attach(c *exec.Cmd) {
	c.Stdin, c.Stdout = m.tty, m.tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

func (m *terminal) typed(text string) {
	m.t.Helper()
	if _, err := m.ptmx.WriteString(text); err != nil {
		m.t.Fatal(err)
	}
}

// expect waits for a line.
func (m *terminal) expect(want string) {
	m.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case got := <-m.lines:
			if got == want {
				return
			}
		case <-timer.C:
			m.t.Fatalf("the terminal does not show %q", want)
		}
	}
}

func (m *terminal) flags() int {
	m.t.Helper()
	flags, err := unix.FcntlInt(m.tty.Fd(), unix.F_GETFL, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	return flags
}

// TG-18, TG-19: in the foreground a stdio plugin reads the terminal, an
// interrupt ends the host in order, and no flag of the terminal changes.
func TestTerminalForeground(t *testing.T) {
	t.Parallel()
	m := openTerminal(t)
	before := m.flags()
	h := startHost(t, hostSetup{config: hostConfig{Stdio: true}, mode: "echo", attach: m.attach})
	up := h.next("up")
	m.typed("hello\n")
	m.expect("echo hello")
	if got := m.flags(); got != before {
		t.Errorf("flags of the terminal: got %#x, want %#x", got, before)
	}
	m.typed("\x03") // to host and plugin alike
	if e := h.next("end"); e.Text != "" {
		t.Errorf("the host ended with %s", e.Text)
	}
	h.gone()
	if strings.Contains(strings.Join(h.seen, " "), "down") {
		t.Errorf("the plugin %d died first: %v", up.PID, h.seen)
	}
}

// L-02: a plugin without the terminal is not in its group.
func TestTerminalOfOtherPlugins(t *testing.T) {
	t.Parallel()
	m := openTerminal(t)
	h := startHost(t, hostSetup{attach: m.attach})
	up := h.next("up")
	if group, err := syscall.Getpgid(up.PID); err != nil || group != up.PID {
		t.Errorf("the plugin's group is %d, %v", group, err)
	}
	h.next("flow")
	m.typed("\x03")
	if e := h.next("end"); e.Text != "" {
		t.Errorf("the host ended with %s", e.Text)
	}
	h.gone()
	if strings.Contains(strings.Join(h.seen, " "), "down") {
		t.Error("the plugin died first")
	}
}

// TG-18: in the background reading the terminal stops host and plugin, as it
// stops any job, and in the foreground both go on.
func TestTerminalBackground(t *testing.T) {
	t.Parallel()
	m := openTerminal(t)
	h := startHost(t, hostSetup{
		config: hostConfig{Stdio: true}, mode: "echo",
		attach: func(c *exec.Cmd) {
			m.attach(c)
			for i, v := range c.Env {
				if config, ok := strings.CutPrefix(v, envHost+"="); ok {
					c.Env[i] = envJob + "=" + config
				}
			}
			c.Env = append(c.Env, envHost+"=shell")
		},
	})
	up := h.next("up")
	group, err := syscall.Getpgid(up.PID)
	if err != nil || group == up.PID {
		t.Fatalf("the plugin's group is %d, %v: not the host's", group, err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
	m.typed("hello\n")
	for _, pid := range []int{group, up.PID} {
		eventually(t, "the job is stopped", func() bool { return state(pid) == "T" })
	}
	time.Sleep(stopped)
	h.signal(syscall.SIGUSR1)
	m.expect("echo hello")
	m.typed("again\n")
	m.expect("echo again")
	m.typed("\x03")
	if e := h.next("end"); e.Text != "" {
		t.Errorf("the host ended with %s", e.Text)
	}
	h.gone()
	if strings.Contains(strings.Join(h.seen, " "), "down") {
		t.Errorf("the plugin was killed: %v", h.seen)
	}
}

// L-02: a signal to the whole group reaches host and stdio plugin; the plugin
// outlives the host's drain.
func TestSignalToTheGroup(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe(t)
			h := startHost(t, hostSetup{config: hostConfig{Stdio: true}, mode: "echo", attach: func(c *exec.Cmd) { c.Stdin = r }})
			h.next("up")
			if err := syscall.Kill(-h.cmd.Process.Pid, s); err != nil {
				t.Fatal(err)
			}
			if e := h.next("end"); e.Text != "" {
				t.Errorf("the host ended with %s", e.Text)
			}
			h.gone()
			if strings.Contains(strings.Join(h.seen, " "), "down") {
				t.Errorf("the plugin died first: %v", h.seen)
			}
			_ = w
		})
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return r, w
}

// S-06: only the stdio plugin holds the host's stdin, and only as long as the
// host lives: then the writer before it learns that nobody reads.
func TestStdinEndsWithTheHost(t *testing.T) {
	t.Parallel()
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	h := startHost(t, hostSetup{config: hostConfig{Stdio: true}, mode: "echo", attach: func(c *exec.Cmd) { c.Stdin, c.Stdout = inR, outW }})
	up := h.next("up")
	_ = inR.Close()
	_ = outW.Close()
	got := bufio.NewScanner(outR)
	for i := range 1000 {
		if _, err := fmt.Fprintf(inW, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
		if !got.Scan() || strings.TrimPrefix(got.Text(), "echo ") != fmt.Sprintf("line %d", i) {
			t.Fatalf("line %d: got %q, %v", i, got.Text(), got.Err())
		}
	}
	if err := syscall.Kill(up.PID, 0); err != nil {
		t.Fatal(err)
	}
	h.signal(syscall.SIGKILL)
	eventually(t, "the writer gets a broken pipe", func() bool {
		_, err := inW.WriteString("more\n")
		return errors.Is(err, syscall.EPIPE)
	})
	h.gone()
	if got.Scan() {
		for got.Scan() {
		}
	}
	if got.Err() != nil {
		t.Errorf("the host's stdout did not end: %v", got.Err())
	}
}
