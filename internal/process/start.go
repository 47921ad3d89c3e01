// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Start locates, checks, starts and describes a plugin. Its error is a
// *StartError; nothing is left behind then. The end of ctx ends the start. Where
// LONGSHORE_REATTACH names the endpoint or the transport, Start dials a plugin
// that was started by hand instead.
func Start(ctx context.Context, generation uint64, o Options) (*Process, error) {
	o = o.withDefaults()
	if address, ok := reattachment(o); ok {
		return attach(ctx, generation, address, o)
	}
	program, err := find(o)
	if err != nil {
		return nil, err
	}
	defer program.close()

	sweep(time.Now())
	dir, err := newRunDir()
	if err != nil {
		return nil, o.failed(program.path, StageDirectory, &fault{
			reason: "no folder takes its socket: " + err.Error(), err: err,
			fix: "set XDG_RUNTIME_DIR or TMPDIR to a short path of a folder that can be written",
		})
	}
	r := &procRunner{program: program, dir: dir, options: o, handshake: newOnce(), stage: StageExec}
	r.logs = func(pid int) *logs { return newLogs(o.logger(generation, pid)) }
	s := &started{runner: r, client: newClient(r, o.StartLimit)}
	l, about, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	dir.remove() // the connection is made: nothing is on disk while it runs
	p := &Process{body: s, options: o, generation: generation, log: r.logged.log, link: l, about: about}
	p.log.Log(ctx, slog.LevelInfo, "plugin process started", "path", program.path, "version", about.GetVersion())
	return p, nil
}

// logger is the logger of one generation.
func (o Options) logger(generation uint64, pid int) *slog.Logger {
	log := o.Logger.With("plugin", o.Name)
	if o.Endpoint != "" {
		log = log.With("endpoint", o.Endpoint)
	}
	return log.With("generation", generation, "pid", pid)
}

// find locates and checks the file.
func find(o Options) (*program, error) {
	path, err := Locate(o.Name, o.Path)
	if err != nil {
		var start *StartError
		if errors.As(err, &start) {
			start.Endpoint = o.Endpoint
		}
		return nil, err
	}
	program, bad := openProgram(path, o.Checksum)
	if bad != nil {
		return nil, o.failed(path, StageCheck, bad)
	}
	return program, nil
}

func (o Options) failed(path string, stage Stage, bad *fault) *StartError {
	return &StartError{
		Name: o.Name, Endpoint: o.Endpoint, Path: path, Stage: stage,
		Reason: bad.reason, Fix: bad.fix, Err: bad.err,
	}
}

// started is a process that this host started.
type started struct {
	runner *procRunner
	client *plugin.Client
}

// errStartLimit is the cause of a context that ended by the start limit.
var errStartLimit = errors.New("start limit reached")

// start runs all that the start limit is over.
func (s *started) start(ctx context.Context) (link.Link, *transportpb.DescribeResponse, error) {
	r := s.runner
	limited, cancel := withRunningLimit(ctx, r.options.StartLimit, errStartLimit)
	defer cancel()

	// go-plugin blocks, and holds a lock that its Kill wants as well, until the
	// plugin speaks. Killing through the runner frees it.
	stop := context.AfterFunc(limited, func() { _ = r.Kill(context.Background()) })
	l, err := dispense(s.client)
	var about *transportpb.DescribeResponse
	if err == nil {
		err = limited.Err() // a mute plugin had to be killed for go-plugin to return
	}
	if err == nil {
		r.enter(StageDescribe)
		about, err = l.Describe(limited, &transportpb.DescribeRequest{Host: r.options.Host})
	}
	if err == nil && about.GetName() != r.options.Name {
		err = r.options.failed(r.program.path, StageDescribe, &fault{
			reason: fmt.Sprintf("it is the plugin of transport %q", about.GetName()),
			fix:    "give the file of the right plugin its name",
		})
	}
	if stop() && err == nil {
		return l, about, nil
	}
	return nil, nil, s.abort(limited, err)
}

// abort ends what a failed start has left and says why it failed.
func (s *started) abort(limited context.Context, err error) error {
	r := s.runner
	_ = r.Kill(context.Background()) // before the leash: the status tells who ended it
	left := s.finish(context.Background(), 0)

	var start *StartError
	if !errors.As(err, &start) {
		start = r.options.failed(r.program.path, r.reached(), s.why(limited, err))
	}
	start.Output = r.printed()
	start.Err = errors.Join(start.Err, left)
	return start
}

// why says what ended a start: what the runner knows comes before what
// go-plugin makes of it.
func (s *started) why(limited context.Context, err error) *fault {
	r := s.runner
	if bad := r.fault(); bad != nil {
		return bad
	}
	switch c := r.process(); {
	case c != nil && c.byItself():
		return &fault{
			reason: "it " + c.result().String() + before(r.reached()), err: err,
			fix: "look at what it printed; if that says nothing, it is not a plugin of longshore",
		}
	case errors.Is(context.Cause(limited), errStartLimit):
		return &fault{
			reason: fmt.Sprintf("%v passed%s", r.options.StartLimit, before(r.reached())), err: os.ErrDeadlineExceeded,
			fix: "look at what it printed, or raise the start limit",
		}
	case limited.Err() != nil:
		return &fault{reason: "the start was stopped", err: context.Cause(limited)}
	case r.reached() == StageHandshake:
		return &fault{
			reason: "it closed its stdout without a handshake", err: err,
			fix: "look at what it printed; it is not a plugin of longshore",
		}
	case err == nil:
		return &fault{reason: "it was killed"}
	default:
		return &fault{reason: cause(err), err: err}
	}
}

func before(s Stage) string {
	switch s {
	case StageHandshake:
		return " before its handshake"
	case StageConnect:
		return " before it took the connection"
	case StageDescribe:
		return " before it answered Describe"
	default:
		return ""
	}
}
