// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
)

// The pauses before a subscription that ended with a passing fault is opened
// again, unless the fault itself says when.
const (
	reopenFirst = 250 * time.Millisecond
	reopenMax   = 30 * time.Second
)

// brokenGrace is how long a plugin whose stream broke may take to be seen dead;
// one that lives on by then has broken the protocol and is killed.
const brokenGrace = 2 * time.Second

// supervise keeps the endpoint's plugin alive until ctx ends. The result of the
// first try to open it goes to opened.
func (a *attached) supervise(ctx context.Context) {
	o := a.run.opts
	policy := process.RestartPolicy{
		Never: !a.restarts(), First: o.backoffFirst, Max: o.backoffMax,
		Crashes: o.crashes, Within: o.crashesWithin, Optional: a.endpoint.plugin.Optional,
	}
	err := process.NewSupervisor(a.start, policy, process.Hooks{
		Up: a.up, Down: a.down, State: a.breaker, Link: a.link,
		Resume: func(_ process.Generation, resume []byte) { a.keepResume(resume) },
	}).Run(ctx)
	a.reportOpened(err)
	a.detach(err)
	if err != nil && ctx.Err() == nil {
		a.lost(a.loss(err))
	}
}

// start hands over the generation that the host's start left, and starts every
// other one.
func (a *attached) start(ctx context.Context, number uint64) (process.Generation, error) {
	if g := a.first; g != nil {
		a.first = nil
		return g, nil
	}
	g, err := a.spawn(ctx, number)
	a.started(number, g)
	if err != nil && ctx.Err() == nil {
		a.stillDown(err)
	}
	return g, err
}

// up opens a generation.
func (a *attached) up(ctx context.Context, g process.Generation) error {
	err := a.open(ctx, g)
	if err == nil {
		a.mark()
		a.isUp(g)
		about := []any{"generation", g.Generation()}
		if a.endpoint.plugin.InProcess == nil { // its own pid tells nobody anything
			about = append(about, "pid", g.PID())
		}
		a.log.Info("endpoint is up", about...)
	} else if ctx.Err() == nil {
		a.stillDown(err)
		if g.Generation() > 1 {
			a.log.Warn("endpoint could not be opened", "generation", g.Generation(), "error", err)
		}
	}
	a.reportOpened(err)
	a.run.nudge()
	return err
}

// reportOpened passes on what the first try to open the endpoint came to.
func (a *attached) reportOpened(err error) {
	select {
	case a.opened <- err:
	default:
	}
}

// down lets go of a generation that is lost.
func (a *attached) down(g process.Generation, cause error) {
	a.log.Warn("plugin is lost", "generation", g.Generation(), "error", cause)
	a.become(EndpointRestarting, cause)
	a.detach(cause)
	a.run.nudge()
}

// detach takes the generation that is up, if any, off lanes and outbox.
func (a *attached) detach(cause error) {
	a.mu.Lock()
	g := a.now
	a.now, a.linkDown = nil, false
	a.mu.Unlock()
	if g == nil {
		return
	}
	for _, s := range a.subs {
		s.lane.Detach(cause)
	}
	a.outbox.Detach(cause)
	g.cancel()
}

// breaker tells of an endpoint that is given up for now.
func (a *attached) breaker(open bool, cause error) {
	if open {
		a.become(EndpointTripped, cause)
		a.log.Error("endpoint crashes again and again", "error", cause)
	} else {
		a.log.Info("endpoint recovered")
	}
}

// link tells of the connection to the transport.
func (a *attached) link(g process.Generation, up bool, reason string) {
	changed := false
	a.change(func() {
		changed = a.linkDown == up
		a.linkDown = !up
		if changed && up {
			a.condition.turn(EndpointUp, "")
		} else if changed {
			a.condition.turn(EndpointDisconnected, cmp.Or(reason, "the connection is lost"))
		}
	})
	switch {
	case !changed:
	case up:
		a.log.Info("connection is up", "generation", g.Generation())
	default:
		a.log.Warn("no connection", "generation", g.Generation(), "reason", reason)
	}
}

// broken deals with a stream that ended without an orderly end: the plugin is
// dead, or is made so, since nothing of it can be trusted any more. A cause that
// is no loss is a breach of the protocol.
func (a *attached) broken(number uint64, cause error) {
	a.mu.Lock()
	g := a.now
	if g == nil {
		g = a.opening
	}
	a.mu.Unlock()
	if g == nil || g.Generation.Generation() != number {
		return
	}
	var fault *core.Fault
	if a.run.stopping() && errors.As(cause, &fault) && fault.Code == core.FaultClosed {
		return // a stream that was opened just before the plugin was told to close
	}
	var lost *link.LostError
	grace := brokenGrace
	if !errors.As(cause, &lost) {
		grace = 0
	}
	a.run.goroutines.Go(func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-g.Done():
		case <-g.ctx.Done():
		case <-a.run.ended.Done():
		case <-timer.C:
			a.log.Error("plugin broke off a stream and is killed", "generation", number, "error", cause)
			a.mu.Lock()
			a.breach = cause
			a.mu.Unlock()
			g.Kill()
		}
	})
}

// mark remembers what was stale when a generation came up, so that a loss
// counts only its own deliveries.
func (a *attached) mark() {
	for _, s := range a.subs {
		s.staleBefore.Store(s.lane.Counters().Stale)
	}
}

// loss is the error of an endpoint that is lost for good.
func (a *attached) loss(cause error) *EndpointError {
	a.mu.Lock()
	breach := a.breach
	a.mu.Unlock()
	if breach != nil {
		cause = fmt.Errorf("%w; it was killed for this: %w", cause, breach)
	}
	e := &EndpointError{Endpoint: a.endpoint.name, Err: cause}
	for _, s := range a.subs {
		e.add(s)
	}
	return e
}

// lossOf is the error of a subscription that ended for good.
func (a *attached) lossOf(s *subscribed, cause error) *EndpointError {
	e := &EndpointError{Endpoint: a.endpoint.name, Subscription: s.sub.name, Err: cause}
	e.add(s)
	return e
}

// add counts a subscription's deliveries.
func (e *EndpointError) add(s *subscribed) {
	c := s.lane.Counters()
	e.Received += c.Received
	e.Unsettled += c.InWork + c.Stale - s.staleBefore.Load()
	if p := s.lane.State().Position; p != "" {
		e.Position = settlement.Printable(p)
	}
}

// lost stops the host for an endpoint that is gone for good; one that is
// optional is only not ready any more.
func (a *attached) lost(e *EndpointError) {
	a.become(EndpointLost, e.Err)
	if a.endpoint.plugin.Optional {
		a.log.Error("optional endpoint is lost", "error", e)
		a.mu.Lock()
		a.gone = true
		a.mu.Unlock()
		a.run.nudge()
		return
	}
	a.run.fail(e)
}

// lose deals with a subscription that has ended for good with an error. It
// stops the host; one of an optional endpoint stays down until the endpoint's
// next generation.
func (s *subscribed) lose(cause error) {
	a, e := s.on, s.on.lossOf(s, cause)
	a.mu.Lock()
	s.lost = cause
	a.mu.Unlock()
	if !a.endpoint.plugin.Optional {
		a.run.fail(e)
		return
	}
	a.log.Error("subscription of an optional endpoint is lost", "subscription", s.sub.name, "error", e)
	a.run.nudge()
}

// isGone reports whether nothing comes any more for a loss that the host bears.
func (s *subscribed) isGone() bool {
	return s.on.endpoint.plugin.Optional && (s.on.isGone() || s.lostFor() != nil)
}

// lostFor returns why the subscription is not opened again, nil where it is.
func (s *subscribed) lostFor() error {
	s.on.mu.Lock()
	defer s.on.mu.Unlock()
	return s.lost
}

// keepReopening opens the subscription again until it is open, its generation
// is gone, or the run ends.
func (s *subscribed) keepReopening() {
	defer s.on.run.nudge()
	defer s.reopening.Store(false)
	pause := reopenFirst
	if f := s.lane.State().Fault; f != nil && f.RetryAfter > 0 {
		pause = f.RetryAfter
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.on.run.ended.Done():
			return
		}
		if s.on.run.stopping() || !s.lane.State().Ended {
			return // a new generation opened it
		}
		err := s.reopen(s.on.run.ended)
		if err == nil || errors.Is(err, ErrEndpointDown) {
			return
		}
		var f *core.Fault
		if errors.As(err, &f) && !f.Transient {
			s.lose(err)
			return
		}
		s.on.log.Warn("subscription could not be opened", "subscription", s.sub.name, slog.Any("error", err))
		pause = min(2*pause, reopenMax)
		timer.Reset(pause)
	}
}
