// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/tied"
)

// endGrace is what a command gets between SIGTERM and SIGKILL, and what a process
// that it left behind gets to close its output.
const endGrace = 2 * time.Second

// Error says how a command failed.
type Error struct {
	Role    string // "injector", "collector", "disconnect command"
	Command string // as it was given
	Reason  string // what is wrong; "" = Err says it
	Stderr  string // the last line of its standard error
	Err     error  // the cause; nil = the reason says it all
}

// Error names the command, how it failed, and the last line that it wrote to
// standard error.
func (e *Error) Error() string {
	text := e.Role + " " + e.Command + ": " + e.Reason
	if e.Err != nil {
		if e.Reason != "" {
			text += ": "
		}
		text += e.Err.Error()
	}
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// program is one run of a command.
type program struct {
	role    string
	command []string
	env     []string
	end     *os.File // its descriptor 3; nil = none
	stdin   io.Reader
	stdout  io.Writer

	stderr tail
}

// run runs the command to its end, or to ctx's. Nothing of it is left then.
func (p *program) run(ctx context.Context) error {
	if len(p.command) == 0 {
		return p.failed("no command is given", nil)
	}
	unpin := tied.Pin()
	defer unpin()
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.env, p.stdin, p.stdout, &p.stderr
	if p.end != nil {
		cmd.ExtraFiles = []*os.File{p.end}
	}
	cmd.SysProcAttr = tied.Attributes()
	cmd.WaitDelay = endGrace
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return p.failed("it cannot be started", err)
	}
	err := cmd.Wait()
	// What it left running. That there is nothing is the common case.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if ctx.Err() != nil {
		return p.failed("it was ended", context.Cause(ctx))
	}
	var status *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // the latter: status 0, and something held its output
		return nil
	case errors.As(err, &status):
		return p.failed(ending(status.ProcessState), nil)
	}
	return p.failed("", err)
}

// failed makes the error of a run.
func (p *program) failed(reason string, err error) error {
	return &Error{Role: p.role, Command: strings.Join(p.command, " "), Reason: reason, Stderr: p.stderr.line(), Err: err}
}

// ending says how a process ended.
func ending(s *os.ProcessState) string {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return "it was ended by signal: " + ws.Signal().String()
	}
	return fmt.Sprintf("it exited with status %d", s.ExitCode())
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

// maxTail is how much of the last line is kept: what fits a line of a report.
const maxTail = 256

// Write keeps the end of p. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-2*maxTail):]...)
	t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-2*maxTail):]...)
	return len(p), nil
}

// line returns the last line that holds anything, cut to maxTail bytes.
func (t *tail) line() string {
	end := bytes.TrimSpace(t.kept)
	if i := bytes.LastIndexByte(end, '\n'); i >= 0 {
		end = end[i+1:]
	}
	return string(bytes.ToValidUTF8(end[max(0, len(end)-maxTail):], nil))
}
