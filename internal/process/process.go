// SPDX-License-Identifier: Apache-2.0

// Package process locates, starts, leashes, watches and ends plugin processes.
//
// A generation is one life of an endpoint's plugin:
//
//  1. Start finds and checks the file, executes it with its stdin on a leash,
//     waits for its handshake, connects, and asks Describe. It either returns a
//     Process or leaves nothing behind.
//  2. A Supervisor keeps generations coming: it sends heartbeats, kills what is
//     hung, and starts a new generation after a crash.
//  3. End drops the leash, waits, kills the process group, and returns when
//     everything is gone. A host that is killed drops the leash as well.
package process

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Options says which plugin to run and how.
type Options struct {
	Name     string   // the transport's name
	Path     string   // explicit path; "" = located by name
	Checksum string   // "sha256:hex" of the file; "" = not checked
	Env      []string // names passed on from the host's environment, beside the allow-list
	Stdio    *Stdio   // descriptors 3 and 4 of the plugin
	Endpoint string   // for logs and errors
	Host     string   // name and version, for the plugin's log

	// Logger gets the plugin's log, with the attributes plugin, endpoint,
	// generation and pid. nil discards it.
	Logger *slog.Logger
	// Stray is called with each line of the plugin's stdout behind its handshake,
	// from one goroutine; the line is valid during the call. nil = it is only
	// logged, and no more than a few lines a second are.
	Stray func(line []byte)

	StartLimit time.Duration // handshake, connection and Describe; default 10 s
	EndLimit   time.Duration // between leash and kill; default 1.5 s
	Heartbeat  time.Duration // default 1 s; negative = none
	Missed     int           // heartbeats missed before it is hung; default 5
}

// The defaults of Options.
const (
	defaultStartLimit = 10 * time.Second
	defaultEndLimit   = 1500 * time.Millisecond
	defaultHeartbeat  = time.Second
	defaultMissed     = 5
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.StartLimit <= 0 {
		o.StartLimit = defaultStartLimit
	}
	if o.EndLimit <= 0 {
		o.EndLimit = defaultEndLimit
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.Missed <= 0 {
		o.Missed = defaultMissed
	}
	return o
}

// Stdio is the host's standard input and output. They stay the caller's.
type Stdio struct{ In, Out *os.File }

// body is what a generation lives in.
type body interface {
	pid() int
	done() <-chan struct{}
	exit() Exit
	stderr() []string
	kill()
	// finish ends it within the limit, and returns when nothing is left.
	finish(ctx context.Context, limit time.Duration) error
}

// Process is one generation of a plugin process. Its methods may be called from
// any goroutine. End must be called, after a crash too.
type Process struct {
	body       body
	options    Options
	generation uint64
	log        *slog.Logger
	link       link.Link
	about      *transportpb.DescribeResponse

	hung  atomic.Bool
	end   sync.Once
	ended error
}

// Link is the connection to the plugin.
func (p *Process) Link() link.Link { return p.link }

// Description is what Describe answered.
func (p *Process) Description() *transportpb.DescribeResponse { return p.about }

// PID returns the process id, 0 for a process that was attached to.
func (p *Process) PID() int { return p.body.pid() }

// Generation returns the number given to Start.
func (p *Process) Generation() uint64 { return p.generation }

// Done is closed when the process has been reaped. It is the one sign of its
// death: streams may break before, or never.
func (p *Process) Done() <-chan struct{} { return p.body.done() }

// Exit says how the process ended; it is valid after Done.
func (p *Process) Exit() Exit {
	exit := p.body.exit()
	exit.Hung = p.hung.Load()
	return exit
}

// Stderr returns the last lines of the plugin's stderr, newest last, after the
// first lines of a panic. It is complete once End has returned.
func (p *Process) Stderr() []string { return p.body.stderr() }

// Heartbeats tells the Supervisor how often to ask whether the plugin still
// runs (0 = never), how many answers may be missing, and the level of the
// plugin's log.
func (p *Process) Heartbeats() (every time.Duration, missed int, level string) {
	return max(p.options.Heartbeat, 0), p.options.Missed, logLevel(p.options.Logger)
}

// Hang kills the process group of a plugin that does not answer.
func (p *Process) Hang() {
	p.hung.Store(true)
	p.Kill()
}

// Kill kills the process group at once; of a plugin with the host's standard
// input and output, which shares the host's group, only the process. A process
// that was attached to lives on, only the connection ends.
func (p *Process) Kill() { p.body.kill() }

// End drops the leash, waits, kills the group, and returns when the process is
// reaped and nothing of it is left. The caller has called Close before. The end
// of ctx shortens the wait, not the killing. Its error says what could not be
// ended.
func (p *Process) End(ctx context.Context) error {
	p.end.Do(func() {
		p.ended = p.body.finish(ctx, p.options.EndLimit)
		exit := p.Exit()
		level := slog.LevelInfo
		if exit.Signal != nil || exit.Code > 0 {
			level = slog.LevelWarn
		}
		p.log.Log(context.WithoutCancel(ctx), level, "plugin process ended", "how", exit.String())
	})
	return p.ended
}
