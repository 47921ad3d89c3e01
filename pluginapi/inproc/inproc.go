// SPDX-License-Identifier: Apache-2.0

// Package inproc runs a transport without a process of its own: the same
// interfaces, order of calls, credit and receipts as behind Serve, without
// serialisation and without the protection of a process. It is for tests of
// transports and of services, and the baseline that benchmarks compare with.
//
// # Caveats
//
// A panic on a goroutine that the transport started itself, or a fatal error of
// the Go runtime, ends the host. What a transport returns from Receive is read
// by handlers as it is: it must not be changed afterwards, and the Memory of a
// Batch is not released.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
)

// cleanLimit bounds how long a generation that was killed lets its transport
// close what it holds.
const cleanLimit = 5 * time.Second

// Options say what a generation knows of its host. The zero value is usable.
type Options struct {
	Endpoint   string
	Generation uint64           // 0 is read as 1
	Logger     *slog.Logger     // what Settings.Logger is; nil = discarded
	Stdio      *pluginapi.Stdio // the host's stdin and stdout, nil = not passed on
}

// Generation is one life of a transport within this process.
type Generation struct {
	instance    *pluginapi.Instance
	link        *link.LocalLink
	description *transportpb.DescribeResponse
	number      uint64

	ending sync.Once
	done   chan struct{}
	exit   process.Exit // set before done is closed
}

// New makes a generation of t and describes it. Its error is a *core.Fault.
func New(t pluginapi.Transport, o Options) (*Generation, error) {
	g := &Generation{
		instance: pluginapi.NewInstance(t, o.Logger, o.Stdio),
		number:   max(o.Generation, 1),
		done:     make(chan struct{}),
	}
	g.link = link.Local(g.instance.Server())
	d, err := g.link.Describe(context.Background(), &transportpb.DescribeRequest{Host: "inproc"})
	if err != nil {
		return nil, fmt.Errorf("start endpoint %q in process: %w", o.Endpoint, err)
	}
	g.description = d
	if w, ok := t.(process.Watched); ok {
		w.Began(o.Endpoint, g)
	}
	return g, nil
}

// Link is the connection to the transport.
func (g *Generation) Link() link.Link { return g.link }

// Description is what Describe answered.
func (g *Generation) Description() *transportpb.DescribeResponse { return g.description }

// Generation returns the number of this life.
func (g *Generation) Generation() uint64 { return g.number }

// PID returns the id of this process.
func (g *Generation) PID() int { return os.Getpid() }

// Done is closed when the generation has ended.
func (g *Generation) Done() <-chan struct{} { return g.done }

// Exit says how the generation ended; it is valid after Done.
func (g *Generation) Exit() process.Exit { return g.exit }

// Stderr returns nil: what the transport logs goes to the logger.
func (g *Generation) Stderr() []string { return nil }

// End ends the generation and returns when nothing of it is left, or ctx ends.
// The host has called Close before; without it the transport is closed with
// accepted publishes flushed within ctx.
func (g *Generation) End(ctx context.Context) error {
	g.ending.Do(func() {
		go func() {
			defer close(g.done)
			g.instance.Abandon(ctx)
			g.finish(ctx, errEnded)
		}()
	})
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end transport in process: %w", ctx.Err())
	}
}

// Kill ends the generation as kill -9 ends a plugin: calls and streams break at
// once and nothing is flushed. The transport's Close is still called, with a
// context that has ended, since its connections would outlive it here. Kill does
// not wait for it, Done tells.
func (g *Generation) Kill() {
	g.ending.Do(func() {
		g.exit = process.Exit{Code: -1, Signal: syscall.SIGKILL}
		g.link.Break(errKilled)
		go func() {
			defer close(g.done)
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			g.instance.Abandon(gone)
			ctx, cancel := context.WithTimeout(context.Background(), cleanLimit)
			defer cancel()
			g.finish(ctx, errKilled)
		}()
	})
}

// Crash is Kill for tests: it returns when the generation has ended.
func (g *Generation) Crash() {
	g.Kill()
	<-g.done
}

// finish breaks the link and waits for the transport's calls to return.
func (g *Generation) finish(ctx context.Context, cause error) {
	g.link.Break(cause)
	if err := g.link.Wait(ctx); err != nil {
		g.exit.Hung = true
	}
}

// The causes of a link's end.
var (
	errEnded  = errors.New("generation has ended")
	errKilled = errors.New("generation was killed")
)
