// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// restoreBatch is how many rows are read from the journal at a time.
const restoreBatch = 256

// RestoreOptions say how copies of former runs are published.
type RestoreOptions struct {
	Journal  Journal
	Outboxes func(endpoint string) *Outbox
	// Route is where the destination of a row leads to: its capabilities decide
	// when the row is removed. A refused route parks the copy.
	Route        func(c Copy) core.Route
	PublishLimit time.Duration // D2, default 60 s
}

// Restore takes over stored copies of former runs from the journal and
// publishes each when it is due. It returns when the first of them are taken
// over, and reads more as room comes until Close.
func (w *Waiting) Restore(ctx context.Context, o RestoreOptions) error {
	more, err := w.restore(ctx, o)
	if err != nil || !more {
		return err
	}
	w.restoring.Go(func() {
		for more && err == nil {
			if w.hasRoom(w.life) != nil {
				return
			}
			more, err = w.restore(w.life, o)
		}
		if err != nil && w.life.Err() == nil {
			w.o.Logger.Error("stored copies cannot be read, they are published by the next run", "error", err)
		}
	})
	return nil
}

// restore takes over one batch. It reports whether there may be more.
func (w *Waiting) restore(ctx context.Context, o RestoreOptions) (bool, error) {
	w.mu.Lock()
	n := min(restoreBatch, w.o.Messages-w.room.messages)
	w.mu.Unlock()
	if n <= 0 {
		return true, nil
	}
	rows, err := o.Journal.Due(ctx, n)
	if err != nil {
		return false, fmt.Errorf("read stored copies: %w", err)
	}
	for i := range rows {
		w.adopt(&rows[i], o)
	}
	return len(rows) == n, nil
}

// hasRoom waits until another copy has room.
func (w *Waiting) hasRoom(ctx context.Context) error {
	return w.until(ctx, func() bool { return w.room.messages < w.o.Messages && w.room.bytes < w.o.Bytes })
}

// adopt takes over one row: what is left of the plan that stored it, from the
// wait on. The source that it came from has been settled.
func (w *Waiting) adopt(row *Row, o RestoreOptions) {
	l := w.laneOf(row, o)
	s := l.spare.Get().(*settlement)
	s.left, s.stray = true, true
	s.stored = row.ID
	m := row.Copy.Message.Clone()
	s.out = frame.Outgoing{Message: m, Purpose: row.Copy.Purpose, Carry: row.Copy.Carry}
	s.of = nil
	s.c = core.Case{
		Source:  core.Capabilities{Ack: core.AckSingle},
		Retry:   o.Route(row.Copy),
		Journal: true,
		Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, After: max(row.Delay, 1)},
	}
	s.c.Retry.Caps.MaxDelay = 0 // the wait has begun here
	refused := s.c.Retry.State != core.RouteOpen
	s.c.Retry.State = core.RouteOpen
	s.reserved = waitingOverhead + rounded(frame.Weight(&m))
	w.mu.Lock()
	w.use(l, 1, s.reserved)
	w.mu.Unlock()
	l.mu.Lock()
	l.working++
	s.index = len(l.active)
	l.active = append(l.active, s)
	l.mu.Unlock()
	core.Decide(&l.o.Policy, &s.c, &s.plan)
	s.cur = s.plan.Start()
	step, ok := s.cur.Next(core.ResultDone)
	for ok && step.Do != core.ActPublishLater {
		step, ok = s.cur.Next(core.ResultDone)
	}
	s.step = step
	s.mark()
	if refused {
		s.fault = &core.Fault{Code: core.FaultNotFound, Message: fmt.Sprintf("nothing takes %s any more", row.Copy.To)}
		s.resume(core.ResultRefused)
		return
	}
	if r, waits := s.do(); !waits {
		s.resume(r)
	}
}

// laneOf is the lane that speaks for copies of a subscription of a former run.
func (w *Waiting) laneOf(row *Row, o RestoreOptions) *Lane {
	name := WaitingCopies{Endpoint: row.Copy.Endpoint, Subscription: row.Copy.Subscription}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[name]
	if l == nil {
		l = NewLane(LaneOptions{
			Endpoint: name.Endpoint, Subscription: name.Subscription, Logger: w.o.Logger,
			Outboxes: o.Outboxes, Waiting: w, Journal: o.Journal, PublishLimit: o.PublishLimit,
		})
		w.lanes[name] = l
	}
	return l
}
