// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/kit"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/pluginapi"
)

// run is one run of a host: what Run and Explain work on.
type run struct {
	host      *Host
	opts      *options
	log       *slog.Logger
	endpoints []*attached
	byName    map[string]*attached
	subs      []*subscribed
	waiting   *settlement.Waiting

	state      atomic.Int32
	changed    chan struct{} // a lane's state may have changed
	failed     chan error    // the first failure that stops the host
	goroutines sync.WaitGroup
	ended      context.Context // ends when the run does
	end        context.CancelFunc
}

// The states of a run, in order.
const (
	stateStarting int32 = iota
	stateServing
	stateStopping
)

// discardLimit is how long the end of a plugin that was only started may take.
// It is killed well before; the rest is for the kernel.
const discardLimit = 10 * time.Second

// quietPoll is how often a host whose sources are done looks whether the last
// copies and receipts are through: soon enough that a pipeline ends without a
// pause that people see.
const quietPoll = 20 * time.Millisecond

// regainedWait is how long a source that had caught up may take to deliver what
// has come to it while it had no credit. It does not say anew that it has caught
// up where there is nothing.
const regainedWait = time.Second

func newRun(h *Host) *run {
	r := &run{
		host: h, opts: &h.options, log: h.options.logger,
		byName:  make(map[string]*attached),
		changed: make(chan struct{}, 1),
		failed:  make(chan error, 1),
	}
	r.ended, r.end = context.WithCancel(context.Background())
	return r
}

// errRanBefore is what a second Run returns.
var errRanBefore = errors.New("run host: it ran before; make a new one")

// Run starts the host and works until ctx ends, an endpoint is lost, a handler
// fails under [FailFast], or all sources have ended. It then stops as the drain
// limit allows and returns nil, or what went wrong: a [*StartError] when nothing
// was started, an [*EndpointError], a [*HandlerError], and an [*AbandonedError]
// when the stop cut work off. Several are joined. Run is called once.
func (h *Host) Run(ctx context.Context) error {
	h.made("Run")
	h.mu.Lock()
	ran := h.ran
	h.ran = true
	h.mu.Unlock()
	if ran {
		return errRanBefore
	}
	h.tellKit(ctx)
	h.enter(StateStarting, nil)
	r := newRun(h)
	ctx, cancel := h.untilAbort(ctx)
	defer cancel()
	err := r.start(ctx)
	if err == nil {
		defer h.run.Store(nil)
		defer r.closeOutlets()
		err = r.stop(r.serve(ctx))
	}
	h.enter(StateStopped, err)
	return err
}

// tellKit tells a kit for tests, where ctx is its, what the endpoints run on.
func (h *Host) tellKit(ctx context.Context) {
	told := kit.Asked(ctx)
	if told == nil {
		return
	}
	h.mu.Lock()
	var ts []pluginapi.Transport
	for _, e := range h.endpoints {
		if t := e.plugin.InProcess; t != nil {
			ts = append(ts, t)
		}
	}
	h.mu.Unlock()
	told(ts)
}

// untilAbort returns a context that ends with ctx, and at an abort.
func (h *Host) untilAbort(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.alive, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// outbox returns the outbox of an endpoint, nil where there is none.
func (r *run) outbox(name string) *settlement.Outbox {
	if a := r.byName[name]; a != nil {
		return a.outbox
	}
	return nil
}

// stopping reports whether a stop has begun.
func (r *run) stopping() bool { return r.state.Load() == stateStopping }

// ready reports whether everything serves.
func (r *run) ready() bool {
	if r.state.Load() != stateServing {
		return false
	}
	for _, a := range r.endpoints {
		if !a.ready() {
			return false
		}
	}
	for _, s := range r.subs {
		state := s.lane.State()
		if over := state.Ended && state.Fault == nil; !over && (!state.Attached || state.Ended) {
			return false
		}
	}
	return true
}

// fail makes the host stop; the first error counts.
func (r *run) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// nudge makes the main loop look at the lanes again.
func (r *run) nudge() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// serve waits for a reason to stop and returns it, nil for an orderly one.
func (r *run) serve(ctx context.Context) error {
	var poll *time.Timer
	var again <-chan time.Time
	for {
		if ctx.Err() != nil {
			return nil
		}
		r.lookAtEnds()
		switch r.progress(ctx) {
		case sourcesDone:
			r.log.Info("all sources have ended")
			return nil
		case sourcesQuieting:
			if poll == nil {
				poll = time.NewTimer(quietPoll)
				defer poll.Stop()
			} else {
				poll.Reset(quietPoll)
			}
			again = poll.C
		case sourcesOpen:
			again = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return err
		case <-r.changed:
		case <-again:
		}
	}
}

// progress is how far a host's sources are.
type progress uint8

const (
	sourcesOpen     progress = iota // there is more to come
	sourcesQuieting                 // all have ended or caught up, something is under way
	sourcesDone                     // and nothing is under way
)

// progress looks whether the host has nothing left to do.
func (r *run) progress(ctx context.Context) progress {
	if r.opts.stayUp || len(r.subs) == 0 {
		return sourcesOpen
	}
	received := r.received()
	if p := r.look(); p != sourcesDone {
		return p
	}
	// A copy may be on its way back: what the plugins had sent by now is read
	// before the host believes that nothing is left.
	for _, s := range r.subs {
		if s.lane.State().CaughtUp && s.lane.Fence(ctx) != nil {
			return sourcesQuieting
		}
	}
	if p := r.look(); p != sourcesDone || r.received() != received {
		return min(p, sourcesQuieting)
	}
	return sourcesDone
}

// look looks once.
func (r *run) look() progress {
	busy := r.waiting.Len() > 0
	for _, s := range r.subs {
		state := s.lane.State()
		ended := state.Ended && state.Fault == nil || s.isGone()
		if !ended && (!state.CaughtUp || state.Withheld()) {
			return sourcesOpen
		}
		busy = busy || state.InWork > 0 || !ended && time.Since(state.Regained) < regainedWait
	}
	for _, a := range r.endpoints {
		busy = busy || a.outbox.Missing() > 0
	}
	if busy {
		return sourcesQuieting
	}
	return sourcesDone
}

// received counts all deliveries so far.
func (r *run) received() uint64 {
	var n uint64
	for _, s := range r.subs {
		n += s.lane.Counters().Received
	}
	return n
}

// lookAtEnds deals with subscriptions that ended with an error: what may pass is
// opened again, anything else ends the endpoint.
func (r *run) lookAtEnds() {
	for _, s := range r.subs {
		state := s.lane.State()
		if !state.Ended || state.Fault == nil || s.lostFor() != nil || s.reopening.Swap(true) {
			continue
		}
		if state.Fault.Transient {
			s.on.log.Warn("subscription ended, opening it again", "subscription", s.sub.name,
				"code", core.LogStream.String(), "error", state.Fault)
			r.goroutines.Go(s.keepReopening)
			continue
		}
		s.lose(state.Fault)
		s.reopening.Store(false)
	}
}
