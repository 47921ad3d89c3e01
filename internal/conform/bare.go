// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/process"
)

const (
	// socketRoom is the longest path of a folder in which a socket of 20 bytes can
	// be made (protocol, "Handshake"), and socketName those 20 bytes.
	socketRoom = 103 - 1 - socketName
	socketName = 20

	// bareLines is how many lines are kept of what it prints, bareLine how much of
	// each.
	bareLines = 100
	bareLine  = 1 << 10
)

// bare is a process of the plugin that was executed without anything else: no
// connection is made.
type bare struct {
	t      *Trial
	cmd    *exec.Cmd
	leash  *os.File
	runDir string // LONGSHORE_RUN_DIR
	socket string // PLUGIN_UNIX_SOCKET_DIR
	done   chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	stdout  []string
	stderr  []string
	silent  bool // stdout has ended
}

// execute executes the plugin in an environment like a host's, where cookie and
// versions are as given.
func (t *Trial) execute(cookie, versions string) *bare {
	b := &bare{t: t, done: make(chan struct{}), changed: make(chan struct{})}
	// The case's own folder may be too long for a socket.
	root := t.Dir
	if len(root)+len("/"+handshake.RunDirPrefix+"0123456789/s") > socketRoom {
		root = "/tmp"
	}
	dir, err := os.MkdirTemp(root, handshake.RunDirPrefix)
	if err != nil {
		t.Fatalf("the suite cannot make a folder for the plugin's socket: %v", err)
	}
	t.cleanup(func() { _ = os.RemoveAll(dir) })
	b.runDir, b.socket = dir, filepath.Join(dir, "s")
	if err := os.Mkdir(b.socket, 0o700); err != nil {
		t.Fatalf("the suite cannot make a folder for the plugin's socket: %v", err)
	}
	b.cmd = exec.Command(t.Subject.Path) //nolint:gosec,noctx // the plugin under trial; end ends it
	b.cmd.Env = process.Environ(t.Subject.Env, []string{
		handshake.CookieKey + "=" + cookie, handshake.EnvVersions + "=" + versions, handshake.EnvSocketDir + "=" + b.socket,
	}, b.runDir)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.WaitDelay = time.Second // a child of it may hold its pipes
	if err := b.start(); err != nil {
		t.Fatalf("execute the plugin: %v", err)
	}
	return b
}

func (b *bare) start() error {
	in, leash, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // the child has its own
	b.cmd.Stdin, b.leash = in, leash
	out, theirs := io.Pipe()
	errs, theirErrs := io.Pipe()
	b.cmd.Stdout, b.cmd.Stderr = theirs, theirErrs
	if err := b.cmd.Start(); err != nil {
		_ = leash.Close()
		return err
	}
	var readers sync.WaitGroup
	readers.Go(func() { b.read(out, &b.stdout, true) })
	readers.Go(func() { b.read(errs, &b.stderr, false) })
	go func() {
		_ = b.cmd.Wait() // exit tells how it ended
		_ = theirs.Close()
		_ = theirErrs.Close()
		readers.Wait()
		close(b.done)
	}()
	b.t.cleanup(b.end)
	return nil
}

// read keeps the lines of a stream.
func (b *bare) read(from io.Reader, lines *[]string, stdout bool) {
	r := bufio.NewReaderSize(from, bareLine)
	note := func(f func()) {
		b.mu.Lock()
		defer b.mu.Unlock()
		f()
		close(b.changed)
		b.changed = make(chan struct{})
	}
	whole := true // what comes begins a line
	for {
		line, err := r.ReadSlice('\n')
		begins := whole
		whole = !errors.Is(err, bufio.ErrBufferFull)
		if text := strings.TrimSpace(string(line)); begins && text != "" {
			note(func() {
				if len(*lines) < bareLines {
					*lines = append(*lines, text)
				}
			})
		}
		if err != nil && whole {
			if stdout {
				note(func() { b.silent = true })
			}
			return
		}
	}
}

func (b *bare) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// ended waits for the end of the process; false = it goes on.
func (b *bare) ended(within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-b.done:
		return true
	case <-limit.C:
	case <-b.t.Ctx.Done():
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// end kills what is left of it.
func (b *bare) end() {
	_ = b.leash.Close()
	select {
	case <-b.done:
	default:
		_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
		<-b.done
	}
}

// introduction waits for the handshake line and splits it. nil = it has ended,
// closed its standard output, or has not printed one within the subject's Wait.
func (b *bare) introduction() []string {
	ctx, cancel := b.t.limited()
	defer cancel()
	var fields []string
	eventually(ctx, b.change, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		fields = handshakeOf(b.stdout)
		return fields != nil || b.silent
	})
	return fields
}

// handshakeOf finds the handshake among lines.
func handshakeOf(lines []string) []string {
	for _, l := range lines {
		fields := strings.Split(l, "|")
		if len(fields) >= 4 && (fields[2] == "unix" || fields[2] == "tcp") {
			return fields
		}
	}
	return nil
}

// printed returns what it has printed so far.
func (b *bare) printed() (stdout, stderr []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.stdout...), append([]string(nil), b.stderr...)
}

// how says how it ended.
func (b *bare) how() string { return b.cmd.ProcessState.String() }

// told says what it has printed, for faults.
func (b *bare) told() string {
	stdout, stderr := b.printed()
	return fmt.Sprintf("standard output: %s; standard error: %s", quoted(stdout), quoted(stderr))
}

func quoted(lines []string) string {
	if len(lines) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%q", some(lines))
}

// unleash drops the leash and says what is wrong with how it ends.
func (b *bare) unleash() {
	left := family(b.cmd.Process.Pid)
	_ = b.leash.Close()
	since := time.Now()
	if limit := stretched(endLimit); !b.ended(limit) {
		b.t.Errorf("the process did not end within %v after its standard input did", limit)
		return
	}
	b.t.gone(left, since)
	if status, ok := b.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		b.t.Errorf("the end of its standard input ended the process by a signal (%v), it exits by itself", status.Signal())
	}
	if _, err := os.Stat(b.runDir); err == nil {
		b.t.Errorf("the process left the directory that LONGSHORE_RUN_DIR names")
	}
}
