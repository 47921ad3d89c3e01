// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Process is a peer that runs.
type Process struct {
	Address string // that it is bound to, or dials

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
}

// answerLimit bounds the wait for a peer's answer, many times what it takes.
const answerLimit = 2 * time.Minute

// Start starts a peer and waits for its address. It runs until Close.
func Start(ctx context.Context, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, program, args...), stderr: &tail{}} //nolint:gosec // the path is the caller's
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start peer: %w", err)
	}
	var a Address
	if err := p.read(&a); err != nil {
		return nil, errors.Join(fmt.Errorf("start peer %s: %w", strings.Join(args, " "), err), p.Close())
	}
	p.Address = a.Address
	return p, nil
}

// Ask returns what the peer has done so far.
func (p *Process) Ask() (State, error) { return p.Tell("") }

// Tell tells the peer what to do, in words of its own, and returns what it has
// done so far.
func (p *Process) Tell(what string) (s State, err error) {
	if _, err = io.WriteString(p.in, what+"\n"); err != nil {
		return s, fmt.Errorf("ask peer: %w: %s", err, p.stderr)
	}
	return s, p.read(&s)
}

// read reads one answer.
func (p *Process) read(v any) error {
	late := time.AfterFunc(answerLimit, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	b, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read its answer: %w: %s", err, p.stderr)
	}
	return json.Unmarshal(b, v)
}

// PID is the process's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Close ends the peer; what it has queued is lost.
func (p *Process) Close() error {
	err := p.in.Close()
	if wait := p.cmd.Wait(); wait != nil {
		err = errors.Join(err, fmt.Errorf("end peer: %w: %s", wait, p.stderr))
	}
	return err
}

// tail keeps the end of what a peer prints to its standard error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// tailSize is room for an error with its reasons.
const tailSize = 2 << 10

// Write keeps the end of b.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-tailSize):]
	return len(b), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
