// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"cmp"
	"container/heap"
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// later waits for the time of a delayed copy, among the waiting copies. A copy
// that a stop would not wait for is cut at once.
func (s *settlement) later() (core.Result, bool) {
	if s.resend {
		return s.publish()
	}
	s.leave()
	l, w := s.l, s.l.o.Waiting
	l.mu.Lock()
	l.stopActive(s)
	l.counts.Waiting++
	if f := s.f; f != nil {
		s.f = nil
		l.recycle(f)
	}
	l.mu.Unlock()
	s.waiting = true
	laid := w.lay(s)
	// Only now, so that who waits for the lane finds the copy in w.
	l.mu.Lock()
	l.working--
	quiet := l.bell != nil
	l.mu.Unlock()
	if quiet {
		l.changed()
	}
	return core.ResultCut, laid
}

// lay lays a copy by until it is due, and gives its settlement back. Where a stop
// would not wait for it, it reports false and lists it among those that are being
// published.
func (w *Waiting) lay(s *settlement) bool {
	p, c := s.layBy()
	w.mu.Lock()
	if s.reserved == 0 { // it was not known before that it would wait
		p.reserved += waitingOverhead + rounded(frame.Weight(&s.out.Message))
		w.use(s.l, 1, 0)
	}
	w.use(s.l, 0, p.reserved-s.reserved)
	s.reserved = p.reserved
	if which, ok := w.cuts(); ok && s.cuttable(which) {
		w.list(s)
		w.mu.Unlock()
		return false
	}
	now := time.Since(w.base)
	p.due = now + min(s.step.Delay, math.MaxInt64-now)
	p.scene = w.scene(c)
	heap.Push(&w.laid, p)
	if w.laid[0] == p {
		w.clock.set(&w.alarm, w.base.Add(p.due))
	}
	w.mu.Unlock()
	s.reset()
	p.l.spare.Put(s)
	return true
}

// scene returns the one scene that is c. w.mu is held.
func (w *Waiting) scene(c core.Case) *scene {
	s := w.scenes[c]
	if s == nil {
		s = &scene{c: c}
		w.scenes[c] = s
		w.room.bytes += sceneBytes
	}
	s.n++
	return s
}

// list lists a copy that is about to be published, or given up. w.mu is held.
func (w *Waiting) list(s *settlement) {
	w.room.bytes += waitingOpen
	s.index = len(w.open)
	w.open = append(w.open, s)
}

// opens reports whether one more copy may be published. w.mu is held.
func (w *Waiting) opens() bool {
	return len(w.open) < openLeast || w.room.bytes+waitingOpen <= w.o.Bytes
}

// due is the clock's: the first copies' time has come.
func (w *Waiting) due() {
	for range dueAtOnce {
		s := w.takeDue()
		if s == nil {
			return
		}
		life := s.wait.life
		s.startTries()
		s.next()
		if which, ok := w.stops(); ok {
			s.cut(life, which)
		}
	}
	w.mu.Lock()
	w.clock.set(&w.alarm, time.Now())
	w.mu.Unlock()
}

// takeDue takes the first copy, where it is due and there is room to publish it;
// nil = not now.
func (w *Waiting) takeDue() *settlement {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.laid) == 0 {
		return nil
	}
	if due := w.laid[0].due; due > time.Since(w.base) {
		w.clock.set(&w.alarm, w.base.Add(due))
		return nil
	}
	if !w.opens() {
		w.starved = true
		return nil
	}
	p := heap.Pop(&w.laid).(*parcel)
	w.laid.shrink()
	return w.takeUp(p)
}

// takeUp makes a settlement of a copy that does not wait any more. w.mu is held.
func (w *Waiting) takeUp(p *parcel) *settlement {
	s := p.takeUp()
	w.unset(p)
	w.list(s)
	return s
}

// unset lets go of p's scene. w.mu is held.
func (w *Waiting) unset(p *parcel) {
	if p.scene.n--; p.scene.n == 0 {
		delete(w.scenes, p.scene.c)
		w.room.bytes -= sceneBytes
	}
}

// leave gives the room of s back, and takes it off the list where it is on it.
func (w *Waiting) leave(s *settlement, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lost {
		w.lost[of(s.l)]++
	}
	if s.waiting {
		n := len(w.open) - 1
		last := w.open[n]
		w.open[s.index] = last
		last.index = s.index
		w.open[n] = nil
		w.open = w.open[:n]
		w.room.bytes -= waitingOpen
	}
	w.free(s.l, s.reserved)
}

// laid is a heap of copies, the first due in front.
type laid []*parcel

func (h laid) Len() int { return len(h) }
func (h laid) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.generation, b.generation), cmp.Compare(a.id, b.id)) < 0
}
func (h laid) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *laid) Push(x any) { *h = append(*h, x.(*parcel)) }

// Pop implements heap.Interface.
func (h *laid) Pop() any {
	n := len(*h) - 1
	p := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	return p
}

// shrinkLeast is the least memory of a list that is given back.
const shrinkLeast = 4096

// shrink gives memory back when most of it is unused.
func (h *laid) shrink() {
	if c := cap(*h); c > shrinkLeast && len(*h) < c/4 {
		*h = append(make(laid, 0, c/2), *h...)
	}
}
