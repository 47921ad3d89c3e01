// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ExitError says how a command failed.
type ExitError struct {
	Command string
	Status  int            // exit status, -1 after a signal
	Signal  syscall.Signal // 0 = it exited by itself
	Timeout time.Duration  // that ended it; 0 = none did
	Stderr  string         // the last line of its standard error
}

// Error names the command, how it ended and the last line that it wrote to
// standard error.
func (e *ExitError) Error() string {
	var how string
	switch {
	case e.Timeout > 0:
		how = fmt.Sprintf("no end within %v", e.Timeout)
	case e.Signal != 0:
		how = "ended by signal " + e.Signal.String()
	default:
		how = fmt.Sprintf("exit status %d", e.Status)
	}
	if e.Stderr != "" {
		how += ": " + e.Stderr
	}
	return fmt.Sprintf("command %s: %s", e.Command, how)
}

// Status is an exit status as an error, which the *ExitError of a command that
// ended so is by errors.Is.
type Status int

// Error names the status.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Is reports whether target is the Status with which the command ended by itself.
func (e *ExitError) Is(target error) bool {
	s, ok := target.(Status)
	return ok && e.Timeout == 0 && e.Signal == 0 && e.Status == int(s)
}

// exitError describes the end of a command that did not succeed.
func (c *Command) exitError(state *os.ProcessState, timedOut bool, stderr *output, err error) error {
	if state == nil {
		return fmt.Errorf("wait for command %s: %w", c.Path, err)
	}
	e := &ExitError{Command: c.Path, Status: state.ExitCode(), Stderr: stderr.lastLine()}
	if timedOut {
		e.Timeout = c.Timeout
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal()
	}
	return e
}

// log writes the lines of an output.
func (c *Command) log(stream string, o *output) {
	for line := range bytes.Lines(o.kept) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			c.Logger.Info(string(line), "command", c.Path, "stream", stream)
		}
	}
	if o.cut > 0 {
		c.Logger.Info("more output not shown", "command", c.Path, "stream", stream, "bytes", o.cut)
	}
}
