// SPDX-License-Identifier: Apache-2.0

// Package command runs a program for each message: the payload on its standard
// input, name, attempt and headers in its environment. Its exit status is the
// outcome.
//
// # Caveats
//
//   - A command runs in a process group of its own. What it leaves running there
//     is ended with it.
//   - On Linux a command ends with this process, however that ends. What the
//     command itself has started does so only where the stop is orderly.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/tied"
)

// The exit statuses that say an outcome, from sysexits.h where it fits. 0 acks;
// any other is a retry.
const (
	StatusDrop       = 65 // EX_DATAERR
	StatusSnooze     = 69 // EX_UNAVAILABLE
	StatusDeadLetter = 70 // EX_SOFTWARE
	StatusRetry      = 75 // EX_TEMPFAIL
)

const (
	// endGrace is what a command gets between SIGTERM and SIGKILL, and what a
	// process that it left behind gets to finish writing: long enough for a trap
	// or a flush, far below the second that a stop leaves for handlers.
	endGrace = 500 * time.Millisecond
	// maxPayload is the largest payload that the protocol carries.
	maxPayload = 64 << 20
	// maxLogged is what is kept of an output for the log: about a screen.
	maxLogged = 4 << 10
)

// Command is a program that is run for messages. Its methods may be called from
// any goroutine.
type Command struct {
	Path    string   // as Find returned it
	Args    []string // without the program
	Timeout time.Duration
	// Payload keeps the standard output, whole, for Run to return; otherwise it
	// is written to the log.
	Payload bool
	Env     []string // of this process; what Run adds comes behind
	Logger  *slog.Logger
}

// Input is what a command gets.
type Input struct {
	Endpoint, Subscription string
	Message                core.Message
	Attempt                uint64
}

// Find returns the file of a program, which is looked for as a shell does. Its
// error ends with what to do.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", fmt.Errorf("find command %s: it is in the current folder, which is not searched; write ./%s", name, name)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("find command %s: it is not an executable file; run chmod +x, or name another: %w", name, err)
	default:
		return "", fmt.Errorf("find command %s: %w; install it, or write its path", name, errors.Unwrap(err))
	}
}

// Run runs the program once and returns its standard output where Payload is
// set. Its error is an *ExitError, ctx's error where that ended the command, or
// says why it could not run.
func (c *Command) Run(ctx context.Context, in Input) ([]byte, error) {
	unpin := tied.Pin()
	defer unpin()
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, c.Path, c.Args...)
	env, left := environment(c.Env, in)
	for _, name := range left {
		c.Logger.Debug("header left out of the environment", "header", name)
	}
	cmd.Env = env
	cmd.Stdin = bytes.NewReader(in.Message.Payload)
	stdout, stderr := &output{max: maxLogged}, &output{max: maxLogged}
	if c.Payload {
		stdout.max = maxPayload
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = tied.Attributes()
	cmd.WaitDelay = endGrace
	var ended atomic.Bool // by us
	cmd.Cancel = func() error {
		ended.Store(true)
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start command %s: %w", c.Path, err)
	}
	err := cmd.Wait()
	// Nothing of the group may outlive the message. That it is gone already is
	// the common case.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)

	if !c.Payload {
		c.log("stdout", stdout)
	}
	c.log("stderr", stderr)
	if ended.Load() && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	state := cmd.ProcessState
	if ended.Load() || state == nil || !state.Success() {
		return nil, c.exitError(state, ended.Load(), stderr, err)
	}
	if !c.Payload {
		return nil, nil
	}
	if stdout.cut > 0 {
		return nil, fmt.Errorf("command %s: its output is %d bytes, above the limit of %d for a payload", c.Path, maxPayload+stdout.cut, maxPayload)
	}
	return stdout.kept, nil
}
