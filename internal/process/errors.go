// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Stage is how far a start came.
type Stage string

// The stages of a start, in order.
const (
	StageLocate    Stage = "locate"    // the file was not found
	StageCheck     Stage = "check"     // the file is not what was asked for
	StageDirectory Stage = "directory" // no place for the socket
	StageExec      Stage = "exec"      // the system refused to run it
	StageHandshake Stage = "handshake" // it ran and did not introduce itself
	StageConnect   Stage = "connect"   // it did not take the connection
	StageDescribe  Stage = "describe"  // it did not say what it is
)

// StartError says why a plugin did not start. Nothing of the start is left.
type StartError struct {
	Name     string // the transport
	Endpoint string // "" = none
	Path     string // the file; "" = not found
	Stage    Stage
	Reason   string // what is wrong
	Fix      string // what to do; "" = nothing is known
	Output   string // the first characters that it printed
	Err      error  // the cause; nil = the reason says it all
}

// outputLimit is how many characters of a plugin's output an error carries.
const outputLimit = 200

// Error names the transport, the endpoint, the file, the reason and the fix.
func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "start plugin %s", e.Name)
	if e.Path != "" {
		fmt.Fprintf(&b, " (%s)", e.Path)
	}
	if e.Endpoint != "" {
		fmt.Fprintf(&b, " of endpoint %s", e.Endpoint)
	}
	fmt.Fprintf(&b, ": %s: %s", e.Stage, e.Reason)
	if e.Output != "" {
		fmt.Fprintf(&b, "; it printed %q", e.Output)
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Exit says how a process ended.
type Exit struct {
	Code   int       // exit status, -1 after a signal
	Signal os.Signal // nil = it exited by itself
	Hung   bool      // killed by the host because its heartbeats were missed
}

// String tells it in words.
func (e Exit) String() string {
	switch {
	case e.Hung:
		return "hung: it answered no heartbeat and was killed"
	case e.Signal != nil:
		return "ended by signal: " + e.Signal.String()
	case e.Code < 0:
		return "ended, its status is not known"
	default:
		return fmt.Sprintf("exited with status %d", e.Code)
	}
}

// ExitError is the loss of a running generation as an error.
type ExitError struct {
	Generation uint64
	PID        int // 0 = not a process that was started here
	Exit       Exit
	Killed     error // what made the host kill it, but for missed heartbeats; nil = it ended before
}

// Error tells how the process ended, and why the host killed it where it did.
func (e *ExitError) Error() string {
	who := fmt.Sprintf("plugin process %d (generation %d)", e.PID, e.Generation)
	if e.PID == 0 {
		who = fmt.Sprintf("plugin (generation %d)", e.Generation)
	}
	if e.Killed != nil {
		return fmt.Sprintf("%s broke off its supervision and was killed: %v", who, e.Killed)
	}
	return who + " " + e.Exit.String()
}

// Unwrap returns what made the host kill it.
func (e *ExitError) Unwrap() error { return e.Killed }

// CrashError ends a Supervisor: its plugin crashed too often, or must not be
// started again.
type CrashError struct {
	Crashes int       // within the policy's time
	Since   time.Time // of the first of them
	Never   bool      // the policy forbids a restart
	Cause   error     // of the last crash
	Stderr  []string  // last lines of the last generation, newest last
}

// Error tells the number of crashes, since when, the last cause and the
// plugin's last line.
func (e *CrashError) Error() string {
	var b strings.Builder
	switch since := e.Since.Format(time.RFC3339); {
	case e.Never:
		b.WriteString("plugin crashed and is not started again")
	case e.Crashes == 1:
		fmt.Fprintf(&b, "plugin crashed at %s", since)
	default:
		fmt.Fprintf(&b, "plugin crashed %d times since %s", e.Crashes, since)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if n := len(e.Stderr); n > 0 {
		fmt.Fprintf(&b, "; its last line was %q", e.Stderr[n-1])
	}
	return b.String()
}

// Unwrap returns the cause of the last crash.
func (e *CrashError) Unwrap() error { return e.Cause }

// printed cuts text to the limit of an error's output.
func printed(text string) string {
	n := 0
	for i := range text {
		if n == outputLimit {
			return text[:i]
		}
		n++
	}
	return text
}
