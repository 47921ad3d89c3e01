// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"container/heap"
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
)

// holdRetry is the wait before a requeue that the source did not take is tried
// again.
const holdRetry = time.Second

// run hands back what is due until Close.
func (h *held) run(ctx context.Context) {
	defer close(h.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := h.due(time.Now())
		if len(due) > 0 {
			h.handBack(ctx, due)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-h.change:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// end ends the holding. It reports whether nothing is handed back any more.
func (h *held) end(ctx context.Context) bool {
	h.mu.Lock()
	h.closed = true
	h.leave(h.heap...)
	h.heap, h.waiting, h.accepted = nil, nil, 0
	stop, stopped := h.stop, h.stopped
	h.mu.Unlock()
	if stop == nil {
		return true
	}
	stop()
	select {
	case <-stopped:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave notes what is held at the end; h.mu is held.
func (h *held) leave(xs ...*hold) {
	for _, x := range xs {
		h.left = append(h.left, x.verdict.Handle)
	}
}

// due takes what is due out of the heap, in order, or says how long nothing is.
func (h *held) due(now time.Time) ([]*hold, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []*hold
	for len(h.heap) > 0 && !h.heap[0].due.After(now) {
		x := h.heap[0]
		h.remove(x)
		due = append(due, x)
	}
	if len(h.heap) == 0 {
		return due, time.Hour
	}
	return due, h.heap[0].due.Sub(now)
}

// handBack requeues what is due. What the source does not take is kept and
// tried again, and said in a report.
func (h *held) handBack(ctx context.Context, due []*hold) {
	if !h.take(ctx) {
		h.mu.Lock()
		h.leave(due...)
		h.mu.Unlock()
		return
	}
	vs := make([]Verdict, len(due))
	for i, x := range due {
		vs[i] = x.verdict
	}
	rs := h.sub.Settle(ctx, vs)
	h.give()
	h.mu.Lock()
	var ids []uint64
	for _, x := range due {
		var r Result
		r, rs = pop(rs)
		switch {
		case r.Status == ResultDone || r.Status == ResultStale:
			if !x.accepted {
				ids = append(ids, x.verdict.id)
			}
		case h.closed:
			h.leave(x)
		default:
			h.again(x, r)
		}
	}
	ids = append(ids, h.admit()...)
	h.mu.Unlock()
	h.tell(ids)
}

// again keeps a delivery that the source did not take back; h.mu is held.
func (h *held) again(x *hold, r Result) {
	_, fault := settleStatus(r)
	if fault == nil {
		fault = newFault(core.FaultUnsupported, "requeue: the source does not take it")
	}
	h.reports = append(h.reports, Report{Fault: fault})
	if len(h.reports) > maxSignals {
		h.reports = h.reports[1:]
	}
	x.due = time.Now().Add(holdRetry)
	heap.Push(&h.heap, x)
	if x.accepted {
		h.accepted++
	} else {
		h.waiting = append(h.waiting, x)
	}
}
