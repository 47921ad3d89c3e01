// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// pipeGrace is how long the end of a dead plugin's pipes is waited for, the sign
// that all is read. A grandchild that left the group may hold them for ever; then
// what is in them is read.
const pipeGrace = 200 * time.Millisecond

// procRunner runs one plugin process for go-plugin, whose own runner forces the
// host's stdin and environment upon it and sees its death only once nobody
// holds its pipes.
type procRunner struct {
	program *program
	dir     *runDir
	options Options
	logs    func(pid int) *logs
	env     []string

	handshake *once
	pipes     *pipes
	output    sync.WaitGroup // readers of stdout and stderr
	logged    *logs          // set once the child runs

	mu      sync.Mutex
	child   *child
	stopped bool   // killed before there was a child
	bad     *fault // why the start fails, where go-plugin would only have text
	silent  bool   // its stdout has ended
	stage   Stage
	noise   strings.Builder // first characters of stdout
}

var _ runner.Runner = (*procRunner)(nil)

// forPlugin is the RunnerFunc. Of the command that go-plugin hands over only the
// environment is used; tmpDir lies in the runner's own directory.
func (r *procRunner) forPlugin(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
	r.env = environ(r.options.Env, cmd.Env, r.dir.path, r.options.Stdio != nil)
	return r, nil
}

// Start executes the program.
func (r *procRunner) Start(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return context.Canceled
	}
	child, pipes, err := spawn(r.program, r.env, r.options.Stdio)
	if err != nil {
		r.stage, r.bad = StageExec, refused(r.program.path, err)
		return fmt.Errorf("execute %s: %w", r.program.path, err)
	}
	r.child, r.pipes = child, pipes
	r.stage = StageHandshake
	r.logged = r.logs(child.pid)
	r.read(child, pipes)
	return nil
}

// read reads the plugin's output until it ends, or for a grace after its death.
func (r *procRunner) read(child *child, pipes *pipes) {
	var readers sync.WaitGroup
	readers.Go(func() {
		eachLine(&pipeReader{f: pipes.stdout}, r.stdoutLine)
		r.mu.Lock()
		r.silent = true
		r.mu.Unlock()
		r.handshake.end()
	})
	readers.Go(func() { eachLine(&pipeReader{f: pipes.stderr}, r.logged.stderr) })
	ended := make(chan struct{})
	go func() {
		readers.Wait()
		close(ended)
	}()
	r.output.Go(func() {
		<-child.done
		grace := time.NewTimer(pipeGrace)
		defer grace.Stop()
		select {
		case <-ended:
		case <-grace.C:
			// The plugin's last words may be in there still.
			_ = pipes.stdout.SetReadDeadline(time.Now())
			_ = pipes.stderr.SetReadDeadline(time.Now())
			<-ended
		}
		_ = pipes.stdout.Close()
		_ = pipes.stderr.Close()
	})
}

func (r *procRunner) stdoutLine(line []byte) {
	r.mu.Lock()
	waiting := r.stage == StageHandshake
	in, ok := parseIntroduction(line)
	if !waiting || !ok {
		if waiting && r.noise.Len() < 4*outputLimit {
			r.noise.Write(line[:min(len(line), 4*outputLimit)])
			r.noise.WriteByte('\n')
		}
		r.mu.Unlock()
		r.logged.stdout(line)
		if !waiting && r.options.Stray != nil {
			r.options.Stray(line)
		}
		return
	}
	if bad := in.check(); bad != nil {
		r.bad = bad
		r.mu.Unlock()
		r.handshake.end()
		return
	}
	r.stage = StageConnect
	r.mu.Unlock()
	r.handshake.give(append(append([]byte{}, line...), '\n'))
}

// PluginToHost refuses an address outside the private directory: nothing else
// is protected by it.
func (r *procRunner) PluginToHost(network, address string) (string, string, error) {
	if err := r.dir.holds(address); err != nil {
		err = fmt.Errorf("refuse the plugin's address: %w", err)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stage = StageHandshake
		r.bad = &fault{
			reason: err.Error(), err: err,
			fix: "let the plugin listen in the directory that PLUGIN_UNIX_SOCKET_DIR names",
		}
		return "", "", err
	}
	return network, address, nil
}

// HostToPlugin is for connections from plugin to host; there are none.
func (r *procRunner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// Wait waits for the reaper.
func (r *procRunner) Wait(context.Context) error {
	if c := r.process(); c != nil {
		<-c.done
	}
	return nil
}

// deathDelay is how long after its stdout has ended a dying process may still
// be seen alive.
const deathDelay = 100 * time.Millisecond

// Kill kills what runs, or will. go-plugin calls it as soon as stdout ends; a
// process that is dying by itself then gets the moment that it needs to show
// how.
func (r *procRunner) Kill(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	c, silent := r.child, r.silent
	r.mu.Unlock()
	if c == nil {
		return nil
	}
	if silent {
		within(ctx, c.done, deathDelay)
	}
	c.kill()
	return nil
}

func (r *procRunner) process() *child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// enter notes how far the start came.
func (r *procRunner) enter(s Stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stage = s
}

func (r *procRunner) reached() Stage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stage
}

func (r *procRunner) fault() *fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bad
}

// printed is the first of what the plugin printed to stdout, else the last of
// its stderr.
func (r *procRunner) printed() string {
	r.mu.Lock()
	text := r.noise.String()
	r.mu.Unlock()
	if text == "" && r.logged != nil {
		text = strings.Join(r.logged.tail.lines(), "\n")
	}
	return printed(strings.TrimSpace(text))
}

// Stdout is the handshake's line only.
func (r *procRunner) Stdout() io.ReadCloser { return r.handshake.r }

// Stderr is at its end: the log bridge reads the plugin's.
func (r *procRunner) Stderr() io.ReadCloser { return nothing{} }

// Name is the file's path.
func (r *procRunner) Name() string { return r.program.path }

// ID is never empty: go-plugin's Kill does nothing for a runner without.
func (r *procRunner) ID() string {
	if c := r.process(); c != nil {
		return strconv.Itoa(c.pid)
	}
	return "not started"
}

// Diagnose has nothing to add: a start's error is made from what the runner
// knows, not from text.
func (r *procRunner) Diagnose(context.Context) string { return "" }
