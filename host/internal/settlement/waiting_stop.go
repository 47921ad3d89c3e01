// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"container/heap"
	"context"

	"github.com/longshore-go/longshore/core"
)

// cutting says which copies a stop does not wait for.
type cutting uint8

const (
	cutUnawaited cutting = iota // those that the journal keeps, and those that nobody would read
	cutAll
)

// Drain waits until every copy is published that a stop waits for: not those
// that the journal keeps, and not those that only this process would read,
// which are lost and said so. When ctx ends first the rest is lost too. It
// returns what was lost, by subscription.
func (w *Waiting) Drain(ctx context.Context) []WaitingCopies {
	w.mu.Lock()
	w.draining = true
	w.mu.Unlock()
	w.cut(cutUnawaited)
	if w.empty(ctx) != nil {
		w.cut(cutAll)
	}
	return w.sayLost()
}

// sayLost writes and returns what was lost since the last time.
func (w *Waiting) sayLost() []WaitingCopies {
	w.mu.Lock()
	out := listed(w.lost)
	clear(w.lost)
	w.mu.Unlock()
	for _, c := range out {
		abandoned(w.o.Logger.With("endpoint", c.Endpoint, "subscription", c.Subscription), c.Count)
	}
	return out
}

// empty waits until no copy waits.
func (w *Waiting) empty(ctx context.Context) error {
	return w.until(ctx, func() bool { return w.len() == 0 })
}

// Close drops what waits and ends the clock's goroutine.
func (w *Waiting) Close() {
	w.closing()
	w.restoring.Wait()
	w.mu.Lock()
	w.draining = true
	lanes := make([]*Lane, 0, len(w.lanes))
	for _, l := range w.lanes {
		lanes = append(lanes, l)
	}
	w.mu.Unlock()
	w.cut(cutAll)
	w.clock.close()
	w.sayLost()
	for _, l := range lanes {
		_ = l.Close(context.Background()) // it has no handlers to wait for
	}
}

// cut ends the waits of copies.
func (w *Waiting) cut(which cutting) {
	type copied struct {
		s    *settlement
		life uint64
	}
	w.mu.Lock()
	w.cutsAll = w.cutsAll || which == cutAll
	all := make([]copied, 0, len(w.open))
	for _, s := range w.open {
		all = append(all, copied{s, s.wait.life})
	}
	kept, plain := w.laid[:0], make(map[*Lane]Counters)
	for _, p := range w.laid {
		switch {
		case !p.cuttable(which):
			kept = append(kept, p)
		case p.plain():
			c := plain[p.l]
			c.Lost++
			if !p.stray {
				c.Dropped++
			}
			plain[p.l] = c
			w.unset(p)
			w.free(p.l, p.reserved)
		default:
			w.doomed = append(w.doomed, p)
		}
	}
	for l, c := range plain {
		w.lost[of(l)] += int(c.Lost)
	}
	clear(w.laid[len(kept):])
	w.laid = kept
	heap.Init(&w.laid)
	w.laid.shrink()
	w.mu.Unlock()
	for l, c := range plain {
		l.cutWaiting(c)
	}
	for _, c := range all {
		c.s.cut(c.life, which)
	}
	for s := w.takeDoomed(); s != nil; s = w.takeDoomed() {
		s.resume(core.ResultCut)
	}
}

// cutWaiting counts waiting copies that were cut and lost.
func (l *Lane) cutWaiting(c Counters) {
	l.mu.Lock()
	l.counts.Waiting -= c.Lost
	l.counts.Lost += c.Lost
	l.counts.Dropped += c.Dropped
	l.mu.Unlock()
	l.changed()
}

// takeDoomed takes up one of the copies that are cut; nil = there is none.
func (w *Waiting) takeDoomed() *settlement {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.doomed) - 1
	if n < 0 {
		w.doomed = nil
		return nil
	}
	p := w.doomed[n]
	w.doomed[n] = nil
	w.doomed = w.doomed[:n]
	return w.takeUp(p)
}

// stops says which copies a stop has begun to cut, if it has.
func (w *Waiting) stops() (cutting, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cuts()
}

// cuts is stops with w.mu held.
func (w *Waiting) cuts() (cutting, bool) {
	if w.cutsAll {
		return cutAll, true
	}
	return cutUnawaited, w.draining
}

// cut ends the wait of a copy, unless it is on its way and may still arrive.
func (s *settlement) cut(life uint64, which cutting) {
	sent := false
	k, ok := s.claimIf(life, func(k waitKind) bool {
		if k == waitSends && which == cutAll {
			sent = s.wait.sends.giveUp()
		}
		if k == waitReceipt {
			return s.cuttable(which) && s.wait.box.take(s.wait.p) || which == cutAll
		}
		return s.cuttable(which) && k == waitAgain || which == cutAll
	})
	switch {
	case !ok:
	case s.over:
		s.finish()
	case k == waitSends: // there is no plan yet
		s.did |= didCut
		if sent {
			s.forfeit()
		}
		s.finish()
	default:
		s.resume(core.ResultCut)
	}
}

// cuttable reports whether a stop does not wait for the copy.
func (s *settlement) cuttable(which cutting) bool {
	return which == cutAll || s.stored != "" || s.target().Caps.Retains == core.RetainProcess
}
