// SPDX-License-Identifier: Apache-2.0

// Package demo shows a service at work: bundled lines go through two stages,
// each a host with the pipe plugin as a process of its own, as in
//
//	feed | register | file
//
// The first stage forwards, retries, drops and panics; the second one reads what
// it forwarded and its dead letters, and appends to a stream file that another
// system has begun. The file is read in the end, and everything must add up.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// Options say how the demo is shown.
type Options struct {
	Out   io.Writer
	Style term.Style
	Live  bool            // Out is a terminal: progress is shown in place
	Pace  time.Duration   // pause between two lines
	Abort <-chan struct{} // closed to end at once; nil = never
	Log   *slog.Logger    // gets all that the hosts log at level debug; otherwise the demo shows a part of it
}

// The keys of the demo's pipes.
const (
	keyAirports  = "airports"
	keyDirectory = "directory"
	keyDead      = "dead"
)

// maxAttempts is how often a line is tried.
const maxAttempts = 3

// ErrCutOff says that the demo was ended at once: there is no balance then.
var ErrCutOff = errors.New("the demo was cut off; what was under way is in no balance")

// Run shows the demo until it is done. When ctx ends it feeds no more lines, and
// those that are fed are handled to their end. Its error says what did not add
// up, or why a stage ended.
func Run(ctx context.Context, o Options) error {
	lines := feed()
	pipes, err := newPipes()
	if err != nil {
		return err
	}
	defer pipes.close()
	book, err := newLogbook()
	if err != nil {
		return err
	}
	defer book.remove()
	s := newScreen(o, len(lines))
	first := newRegister(s, o, pipes)
	second := newFile(s, o, pipes, book)

	tables, err := first.host.Explain(ctx)
	if err != nil {
		return fmt.Errorf("explain the demo: %w", err)
	}
	s.opening(tables)

	feeding, stop := context.WithCancel(ctx)
	defer stop()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := s.follow()
	ended := make(chan error, 3)
	go func() {
		err := write(feeding, pipes.feedOut, lines, o.Pace, s)
		ended <- errors.Join(err, pipes.feedOut.Close()) // the end of the input
	}()
	go func() {
		err := first.host.Run(running)
		pipes.closeBetween() // the end of the first stage is the end of the second one's input
		ended <- err
	}()
	go func() { ended <- second.host.Run(running) }()
	var errs []error
	abort := o.Abort
	for left := cap(ended); left > 0; {
		select {
		case err := <-ended:
			left--
			if err != nil {
				errs = append(errs, err)
				stop()
				cancel()
			}
		case <-abort:
			abort = nil
			stop()
			first.host.Abort()
			second.host.Abort()
		}
	}
	stopped()
	if o.Abort != nil && abort == nil {
		return ErrCutOff
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("run the demo: %w", err)
	}
	s.deadLetters()
	if ctx.Err() == nil {
		if err := book.read(ctx, s, o); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the stream file: %w", err)
		}
	}
	return s.closing()
}

// pipes connect the stages: feed -> register -> file -> nowhere.
type pipes struct {
	feedIn, feedOut       *os.File
	betweenIn, betweenOut *os.File
	nowhere               *os.File
}

func newPipes() (*pipes, error) {
	var p pipes
	var err error
	if p.feedIn, p.feedOut, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	if p.betweenIn, p.betweenOut, err = os.Pipe(); err != nil {
		p.close()
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	if p.nowhere, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		p.close()
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	return &p, nil
}

// closeBetween closes what this process holds of the first stage's ends.
func (p *pipes) closeBetween() {
	_ = p.feedIn.Close()
	_ = p.betweenOut.Close()
}

// close closes what is open.
func (p *pipes) close() {
	for _, f := range []*os.File{p.feedIn, p.feedOut, p.betweenIn, p.betweenOut, p.nowhere} {
		if f != nil {
			_ = f.Close() // some are closed already
		}
	}
}

// register is the first stage.
type register struct {
	host   *host.Host
	screen *screen
	bands  [15]int // airports by elevation, a band for every 1024 ft
}

// newRegister declares the first stage.
func newRegister(s *screen, o Options, p *pipes) *register {
	r := &register{screen: s, host: host.New(host.WithLogger(watch(s, o)))}
	pipe := r.host.Endpoint("pipe", host.Plugin{
		Name: "pipe", Stdio: &host.Stdio{In: p.feedIn, Out: p.betweenOut},
	}, map[string]any{"loopback": true})
	host.Handle(pipe.Subscription(keyAirports), r.handle,
		host.Forward(pipe.To(keyDirectory)),
		host.MaxAttempts(maxAttempts),
		host.RetryTo(pipe.To(keyAirports)),
		host.DeadLetterTo(pipe.To(keyDead), host.WithCauses()),
	)
	return r
}

// file is the second stage.
type file struct{ host *host.Host }

// newFile declares the second stage.
func newFile(s *screen, o Options, p *pipes, book *logbook) *file {
	f := &file{host: host.New(host.WithLogger(watch(s, o)))}
	pipe := f.host.Endpoint("pipe", host.Plugin{
		Name: "pipe", Stdio: &host.Stdio{In: p.betweenIn, Out: p.nowhere},
	}, nil)
	host.Handle(pipe.Subscription(keyDirectory), func(_ context.Context, _ *host.Message[core.Message]) error {
		s.count(func(c *counts) { c.directory++ })
		return nil
	}, host.Forward(book.endpoint(f.host).To(keyFiled)), host.RetryTo(pipe.To(keyDirectory)))
	host.Handle(pipe.Subscription(keyDead), func(_ context.Context, m *host.Message[airport]) error {
		s.dead(m.Value, m.Header("x-longshore-attempts"), m.Header("x-longshore-reason"))
		return nil
	}, host.RetryTo(pipe.To(keyDead)))
	return f
}
