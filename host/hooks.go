// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// mostHooks is how many calls of hooks may wait before their subscription begins
// nothing more: enough for bursts, little enough that their messages' copies are
// no burden.
const mostHooks = 1024

// hooksPoll is how often a subscription with too many waiting calls looks again.
const hooksPoll = 5 * time.Millisecond

// hooks calls AfterSettle and OnFinalFailure of one subscription, off its workers.
// Its goroutine runs while there is something to call.
type hooks struct {
	log     *slog.Logger
	settled func(context.Context, Settled)
	failed  func(context.Context, Failure)
	own     Settled          // what is the same for all of them
	dead    core.Destination // of dead letters
	ctx     context.Context  //nolint:containedctx // of the calls; a stop ends it
	cancel  context.CancelFunc

	mu      sync.Mutex
	queue   []settledCall // from head on
	head    int
	running bool          // a goroutine works on the queue
	idle    chan struct{} // closed when nothing is left; nil = nobody waits
	closed  bool          // nothing is called any more
	missed  int           // calls that came after that
}

// settledCall is one delivery to tell of.
type settledCall struct {
	s     Settled
	lost  bool
	final bool
}

// newHooks returns the hooks of a subscription, nil where it has none.
func newHooks(s *subscribed) *hooks {
	rules := s.rules()
	if rules.afterSettle == nil && rules.finalFailure == nil {
		return nil
	}
	h := &hooks{
		log: s.on.log.With("subscription", s.sub.name), settled: rules.afterSettle, failed: rules.finalFailure,
		own: Settled{Endpoint: s.on.endpoint.name, Subscription: s.sub.name}, dead: s.dead.To,
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// full returns how long to wait for room, 0 where there is some.
func (h *hooks) full() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue)-h.head >= mostHooks {
		return hooksPoll
	}
	return 0
}

// keep reports whether the message of a delivery with this plan may be told of.
func (h *hooks) keep(said *settlement.Said, p *core.Plan) bool {
	switch said.Outcome.Kind {
	case core.OutcomeLeave, core.OutcomeFailFast:
		return p.Notes&core.NoteOverCap != 0
	case core.OutcomeAck:
		return h.settled != nil
	}
	return true
}

// finished is the settlement.LaneOptions.Finished of the subscription.
func (h *hooks) finished(f *settlement.Finished) {
	switch f.Said.Outcome.Kind {
	case core.OutcomeLeave, core.OutcomeFailFast:
		if !f.Over { // of one over its cap the handler did not run, and has said nothing
			return
		}
	}
	c := settledCall{s: h.own, lost: f.Lost, final: final(f)}
	if h.settled == nil && !c.final {
		return
	}
	c.s.Message, c.s.Attempt = f.Delivery.Message, f.Delivery.Number
	c.s.Outcome, c.s.Err, c.s.Result, c.s.Took = f.Said.Outcome, f.Said.Err, Result(f.Result), f.Took
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		h.missed++
		return
	}
	h.queue = append(h.queue, c)
	if !h.running {
		h.running = true
		go h.work()
	}
}

// final reports whether a message was given up.
func final(f *settlement.Finished) bool {
	switch {
	case f.Lost, f.Result == settlement.ResultDeadLettered:
		return true
	case f.Result == settlement.ResultDropped:
		return f.Said.Outcome.Kind != core.OutcomeAck || f.Over
	}
	return false
}

// next takes a call off the queue; false when there is none, or nothing is called
// any more.
func (h *hooks) next() (settledCall, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.head == len(h.queue) {
		h.queue, h.head, h.running = h.queue[:0], 0, false
		if h.idle != nil {
			close(h.idle)
			h.idle = nil
		}
		return settledCall{}, false
	}
	c := h.queue[h.head]
	h.queue[h.head] = settledCall{}
	h.head++
	if h.head == mostHooks { // what was called is not kept
		h.queue = append(h.queue[:0], h.queue[h.head:]...)
		h.head = 0
	}
	return c, true
}

// work makes calls until none is left. A hook that ends the goroutine does not
// end the next ones.
func (h *hooks) work() {
	over := false
	defer func() {
		if !over {
			h.log.Error("hook ended its goroutine with runtime.Goexit")
			go h.work()
		}
	}()
	for {
		c, ok := h.next()
		if !ok {
			break
		}
		if h.settled != nil {
			h.call("AfterSettle", func() { h.settled(h.ctx, c.s) })
		}
		if h.failed != nil && c.final {
			x := Failure{Settled: c.s, Lost: c.lost}
			if c.s.Result == ResultDeadLettered {
				x.DeadLetter = h.dead
			}
			h.call("OnFinalFailure", func() { h.failed(h.ctx, x) })
		}
	}
	over = true
}

// call makes one call; what it throws is logged.
func (h *hooks) call(rule string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			e := thrown(v)
			h.log.Error("hook panicked", "rule", rule, "panic", e.Value, "stack", e.Stack)
		}
	}()
	f()
}

// drain waits until all calls are made, or ctx ends; it then ends their context
// and returns how many were not made or did not return.
func (h *hooks) drain(ctx context.Context) int {
	h.mu.Lock()
	if h.running {
		idle := make(chan struct{})
		h.idle = idle
		h.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
		}
		h.mu.Lock()
	}
	defer h.mu.Unlock()
	h.closed = true
	h.cancel()
	left := h.left()
	h.queue, h.head = nil, 0
	return left
}

// late returns how many calls came after drain.
func (h *hooks) late() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missed
}

// waiting returns how many calls are not made yet.
func (h *hooks) waiting() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return uint64(h.left())
}

// left is waiting with h.mu held.
func (h *hooks) left() int {
	n := len(h.queue) - h.head
	if h.running {
		n++
	}
	return n
}
