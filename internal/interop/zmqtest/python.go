// SPDX-License-Identifier: Apache-2.0

// Package zmqtest runs peers of another make for tests: libzmq, by way of pyzmq.
package zmqtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/interop/libzmq"
)

// prelude stands before every script.
const prelude = `
import os, sys, time, threading, zmq
ctx = zmq.Context()
arg = sys.argv[1:]
def say(*what):
    print(*what, flush=True)
def hear():
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    return line.rstrip("\n")
`

// Peer is a running script. Its methods are for the test's own goroutine.
type Peer struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	ended chan struct{}

	mu  sync.Mutex
	err bytes.Buffer
}

// Python starts a script and ends it with the test. In it zmq is imported, ctx
// is a context, arg are the arguments, say prints a line for Line, and hear
// returns the next one of Say, and ends the script where there is none.
func Python(t testing.TB, script string, args ...string) *Peer {
	t.Helper()
	p := &Peer{
		t: t, cmd: exec.Command(libzmq.Python(t), append([]string{"-c", prelude + script}, args...)...),
		lines: make(chan string, 4096), ended: make(chan struct{}),
	}
	p.cmd.Stderr = p
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start pyzmq: %v", err)
	}
	go p.read(out)
	t.Cleanup(p.end)
	return p
}

// read reads the script's lines until it ends.
func (p *Peer) read(out io.Reader) {
	defer close(p.ended)
	s := bufio.NewScanner(out)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		p.lines <- s.Text()
	}
	close(p.lines)
	_ = p.cmd.Wait()
}

// Write takes the script's standard error.
func (p *Peer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.Write(b)
}

// end ends the script, and shows what it has said of a failure.
func (p *Peer) end() {
	p.Kill()
	if p.t.Failed() && p.err.Len() > 0 {
		p.t.Logf("pyzmq: %s", &p.err)
	}
}

// Kill ends the script at once, as kill -9 does.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill()
	for range p.lines {
	}
	<-p.ended
}

// Say sends a line to the script.
func (p *Peer) Say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatalf("say %q: %v", line, err)
	}
}

// Line returns the next line that the script says.
func (p *Peer) Line() string {
	p.t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if ok {
			return line
		}
		<-p.ended
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("the script has ended: %s", &p.err)
	case <-timer.C:
		p.t.Fatalf("the script says nothing for %v", Patience)
	}
	return ""
}

// Heard returns the next line where the script has said it already.
func (p *Peer) Heard() (string, bool) {
	select {
	case line, ok := <-p.lines:
		return line, ok
	default:
		return "", false
	}
}

// Expect fails unless the script's next lines are these.
func (p *Peer) Expect(lines ...string) {
	p.t.Helper()
	for _, want := range lines {
		if got := p.Line(); got != want {
			p.t.Fatalf("the script says %q, want %q", got, want)
		}
	}
}

// Silent fails where the script has said something that begins with prefix and
// was not asked for; other such lines are left out.
func (p *Peer) Silent(prefix string) {
	p.t.Helper()
	for line, ok := p.Heard(); ok; line, ok = p.Heard() {
		if strings.HasPrefix(line, prefix) {
			p.t.Errorf("the script says %q", line)
		}
	}
}
