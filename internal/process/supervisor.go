// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Generation is one life of an endpoint's plugin, in a process or without one.
type Generation interface {
	Link() link.Link
	Description() *transportpb.DescribeResponse
	Generation() uint64
	PID() int
	Done() <-chan struct{}
	Exit() Exit
	Stderr() []string
	End(ctx context.Context) error
	Kill()
}

// heart is a Generation that can hang.
type heart interface {
	Heartbeats() (every time.Duration, missed int, level string)
	Hang()
}

// Hooks are called by a Supervisor, one at a time. A nil hook is not called.
type Hooks struct {
	// Up is called with each started generation; an error ends the generation.
	// A *core.Fault that is not transient ends the supervisor as well. Its
	// context ends when the generation is lost.
	Up func(ctx context.Context, g Generation) error
	// Down is called when a generation that was up is lost. Its process is
	// dead; cause is a *link.LostError.
	Down func(g Generation, cause error)
	// State is called when the breaker opens and closes.
	State func(open bool, cause error)
	// Link and Resume pass on what the plugin reports, once Up has returned.
	// Of several reports that came meanwhile the last one counts.
	Link   func(g Generation, up bool, reason string)
	Resume func(g Generation, resume []byte)
}

// Supervisor keeps one endpoint's plugin alive. It runs once.
type Supervisor struct {
	start   func(ctx context.Context, generation uint64) (Generation, error)
	hooks   Hooks
	first   chan struct{}
	breaker breaker
}

// NewSupervisor returns a supervisor that makes generations with start.
func NewSupervisor(start func(ctx context.Context, generation uint64) (Generation, error), p RestartPolicy, h Hooks) *Supervisor {
	return &Supervisor{start: start, hooks: h, first: make(chan struct{}), breaker: newBreaker(p)}
}

// First is closed when the first generation is up.
func (s *Supervisor) First() <-chan struct{} { return s.first }

// Run starts the plugin and keeps it running until ctx ends (nil), the breaker
// opens or the plugin must not be restarted, by the policy or by what it says
// of itself (*CrashError), or Up refuses for good (its error). The first start's own error is returned as it is unless the
// policy is Optional: what never ran is not started again. Run watches
// heartbeats, kills a hung generation, and returns when the last generation is
// gone.
func (s *Supervisor) Run(ctx context.Context) error {
	for n := uint64(1); ; n++ {
		began := time.Now()
		lost := s.live(ctx, n)
		switch {
		case lost == nil:
			return nil
		case lost.final, lost.unborn && n == 1 && !s.breaker.policy.Optional:
			return lost.cause
		}
		pause, crash := s.breaker.crash(began, time.Now(), lost)
		if crash != nil && (!s.breaker.policy.Optional || crash.Never && lost.lived) {
			return crash
		}
		if crash != nil {
			s.state(true, crash)
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// loss is how a generation was lost.
type loss struct {
	cause  error
	stderr []string
	unborn bool // it did not start
	lived  bool // it was up
	final  bool // no other generation would mend it
}

// live lives one generation. nil is the end of ctx.
func (s *Supervisor) live(ctx context.Context, n uint64) *loss {
	if ctx.Err() != nil {
		return nil
	}
	g, err := s.start(ctx, n)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // stopped while it started
	case err != nil:
		return &loss{cause: err, unborn: true}
	}
	if g.Description().GetRestart() == transportpb.RestartMode_RESTART_MODE_NEVER {
		s.breaker.policy.Never = true
	}
	w := newWatch(g)
	defer w.stop()
	if err := s.up(ctx, g, w); err != nil {
		return s.refuse(ctx, g, w, err)
	}
	s.isUp()
	for {
		select {
		case <-ctx.Done():
			_ = g.End(context.WithoutCancel(ctx)) // logged by the generation
			return nil
		case <-w.news:
			s.report(g, w)
		case <-g.Done():
			return s.down(ctx, g, w)
		case <-w.lost:
			return s.down(ctx, g, w)
		}
	}
}

// up calls the hook with a context that ends with the generation.
func (s *Supervisor) up(ctx context.Context, g Generation, w *watch) error {
	if s.hooks.Up == nil {
		return nil
	}
	upCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-g.Done():
			cancel(&link.LostError{Cause: exitError(g, nil)})
		case <-w.lost:
			cancel(&link.LostError{Cause: w.err})
		case <-over:
		}
	}()
	err := s.hooks.Up(upCtx, g)
	close(over)
	<-ended
	return err
}

// refuse ends a generation whose Up failed.
func (s *Supervisor) refuse(ctx context.Context, g Generation, w *watch, err error) *loss {
	s.resume(g, w)
	var fault *core.Fault
	isFault := errors.As(err, &fault)
	if !isFault || fault.Transient {
		w.settle(g) // a broken connection may come before the death that explains it
	}
	died := closed(g.Done())
	_ = g.End(context.WithoutCancel(ctx))
	switch {
	case isFault && !fault.Transient:
		return &loss{cause: err, final: true}
	case ctx.Err() != nil:
		return nil
	case died:
		err = &link.LostError{Cause: exitError(g, nil)}
	}
	return &loss{cause: err, stderr: g.Stderr()}
}

// down ends a generation that was up.
func (s *Supervisor) down(ctx context.Context, g Generation, w *watch) *loss {
	w.settle(g)
	var killed error
	if !closed(g.Done()) {
		killed = w.err
		g.Kill() // it lives, but nobody can reach it
		within(context.Background(), g.Done(), reapLimit)
	}
	s.report(g, w)
	cause := &link.LostError{Cause: exitError(g, killed)}
	if s.hooks.Down != nil {
		s.hooks.Down(g, cause)
	}
	_ = g.End(context.WithoutCancel(ctx))
	return &loss{cause: cause, stderr: g.Stderr(), lived: true}
}

func (s *Supervisor) isUp() {
	if !closed(s.first) {
		close(s.first)
	}
	if s.breaker.up() {
		s.state(false, nil)
	}
}

func (s *Supervisor) state(open bool, cause error) {
	if s.hooks.State != nil {
		s.hooks.State(open, cause)
	}
}

// report passes on the last reports.
func (s *Supervisor) report(g Generation, w *watch) {
	if state := w.takeLink(); state != nil && s.hooks.Link != nil {
		s.hooks.Link(g, state.GetUp(), state.GetReason())
	}
	s.resume(g, w)
}

func (s *Supervisor) resume(g Generation, w *watch) {
	if resume, ok := w.takeResume(); ok && s.hooks.Resume != nil {
		s.hooks.Resume(g, resume)
	}
}

// exitError is the end of a generation, which the host killed for the given
// reason unless that is nil.
func exitError(g Generation, killed error) error {
	e := &ExitError{Generation: g.Generation(), PID: g.PID(), Exit: Exit{Code: -1}, Killed: killed}
	if closed(g.Done()) {
		e.Exit = g.Exit()
	}
	if e.Exit.Code >= 0 || e.Exit.Signal != nil && e.Exit.Signal != syscall.SIGKILL {
		e.Killed = nil // it was faster: its own end broke the stream
	}
	return e
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sleep waits; false = ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
