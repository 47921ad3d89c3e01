// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// news is something that a settlement is to be told of, outside of any lock.
type news struct {
	s     *settlement // nil = it is only to be logged, with attrs
	life  uint64
	r     core.Result
	v     core.Void
	fault *core.Fault
	open  bool // the verdict was sent, and nobody knows what became of it
	attrs []any
}

// void marks what ended without a verdict.
func (g *generation) void(v *transportpb.Void) {
	state := core.VoidGone
	if v.GetReturns() {
		state = core.VoidReturns
	}
	first, count := v.GetFirst(), v.GetCount()
	var told []news
	g.l.mu.Lock()
	if g.lost {
		g.l.mu.Unlock()
		return
	}
	for f := g.live; f != nil; {
		next := f.next
		switch {
		case v.GetAll(), count > 0 && f.id >= first && f.id-first < count,
			count == 0 && !v.GetAll() && f.scope == v.GetScope():
			told = g.voided(f, state, told)
		}
		f = next
	}
	swept := g.l.sweep()
	g.settled()
	g.l.mu.Unlock()
	for _, n := range told {
		n.s.voided(n.life, n.v)
	}
	if swept {
		g.l.changed()
	}
}

// voided marks one delivery, whose credit the plugin has back. l.mu is held.
func (g *generation) voided(f *flight, state core.Void, told []news) []news {
	if f.state() != core.VoidLive {
		return told
	}
	f.void.Store(uint32(state))
	g.uncount(f)
	if f.s != nil {
		told = append(told, news{s: f.s, life: f.life, v: state})
	}
	return told
}

// results takes the answers to verdicts: those that are wanted, and those that
// are not DONE.
func (g *generation) results(rs []frame.SettleResult) error {
	l := g.l
	var told []news
	l.mu.Lock()
	if g.lost {
		l.mu.Unlock()
		return nil
	}
	for i := range rs {
		r := &rs[i]
		n := max(r.Count, 1)
		if n > g.id+1 || r.First > g.id+1-n {
			l.mu.Unlock()
			return g.breach(fmt.Sprintf("answered verdicts for deliveries %d to %d of %d", r.First, r.First+n-1, g.id))
		}
		told = g.answers(r, n, told)
	}
	g.settled()
	l.mu.Unlock()
	for _, n := range told {
		if n.s == nil {
			l.uns.hit("verdict failed, the source still has the delivery", n.attrs...)
			continue
		}
		n.s.answered(n.life, n.r, n.fault)
	}
	return nil
}

// answers takes one answer to n verdicts. l.mu is held.
func (g *generation) answers(r *frame.SettleResult, n uint64, told []news) []news {
	if r.First == 0 {
		if len(g.fences) > 0 {
			close(g.fences[0])
			g.fences = g.fences[1:]
		}
		return told
	}
	late := n
	if n == 1 {
		if f := g.wanted[r.First]; f != nil {
			return g.answer(f, r, told)
		}
	} else {
		for id, f := range g.wanted {
			if id-r.First < n {
				told = g.answer(f, r, told)
				late--
			}
		}
	}
	if len(g.stray) > 0 {
		late -= g.strayAnswer(r.First, n)
	}
	if late == 0 || r.Status == frame.SettleDone {
		return told
	}
	// Nobody waits for these: they were given by plans that end with them.
	g.l.counts.Failed += late
	if r.Status == frame.SettleStale {
		return told
	}
	return append(told, news{attrs: []any{
		"delivery", r.First, "count", late, "status", statusText(r.Status), "error", faultText(r.Fault),
	}})
}

// answer takes the answer to a verdict that is waited for. l.mu is held.
func (g *generation) answer(f *flight, r *frame.SettleResult, told []news) []news {
	if f.extends > 0 {
		// Answers come in the order of the verdicts. A hold that could not be
		// prolonged is told by Void, or by the next verdict.
		f.extends--
		if f.extends == 0 && !f.wanted {
			delete(g.wanted, f.id)
		}
		return told
	}
	delete(g.wanted, f.id)
	f.wanted = false
	n := news{s: f.s, life: f.life, r: core.ResultFailed, fault: foreignFault(r.Fault)}
	switch r.Status {
	case frame.SettleDone:
		n.r = core.ResultDone
	case frame.SettleStale:
		n.r = f.stale()
		g.l.counts.Failed++
	default:
		g.l.counts.Failed++
	}
	if n.s == nil {
		return told
	}
	return append(told, n)
}

// stale is the result of a verdict that came too late: as Void said, else as
// the profile says.
func (f *flight) stale() core.Result {
	v := f.state()
	if v == core.VoidLive {
		v = f.letGo()
	}
	if v == core.VoidGone {
		return core.ResultStaleGone
	}
	return core.ResultStaleReturns
}

// lose lets the generation go: what is unsettled is void, what awaits an answer
// does not get it.
func (g *generation) lose(cause error) {
	l := g.l
	var told, stale []news
	l.mu.Lock()
	if g.lost {
		l.mu.Unlock()
		return
	}
	g.lost = true
	sought := g.seek
	g.seek = nil
	l.tellSeek(sought, ErrDown)
	if l.now == g {
		l.now, l.caughtUp = nil, false
		if cause != nil && g.acks() {
			// Verdicts may have been on their way: what they were about returns, and
			// the next generation has to read it.
			l.ended, l.endFault = false, nil
		}
		if !l.ended {
			l.turned = time.Now()
		}
	}
	for id, f := range g.wanted {
		delete(g.wanted, id)
		if f.wanted && f.s != nil {
			n := news{s: f.s, life: f.life, r: f.stale()}
			n.open = f.state() == core.VoidLive && !g.unsent(id)
			stale = append(stale, n)
		}
		f.wanted, f.extends = false, 0
	}
	for f := g.live; f != nil; {
		next := f.next
		told = g.voided(f, f.letGo(), told)
		f = next
	}
	l.sweep()
	g.runs = nil
	l.mu.Unlock()
	g.a.Cancel() // whose effect on the stream is no end of its own any more
	signal(g.wake)
	if cause != nil {
		g.log.Debug("generation let go", "error", cause)
	}
	doubles := 0
	for _, n := range stale {
		if n.open && n.s.unanswered(n.life) {
			doubles++
			continue
		}
		n.s.answered(n.life, n.r, n.fault)
	}
	if doubles > 0 {
		l.warn(core.LogDouble, "plugin lost before it answered acks, their copies leave all the same, possible doubles",
			"generation", g.a.Number, "count", doubles)
	}
	for _, n := range told {
		n.s.voided(n.life, n.v)
	}
	l.changed()
}

// unsent reports whether the verdict about a delivery is still queued. l.mu is
// held.
func (g *generation) unsent(id uint64) bool {
	for i := range g.runs {
		if r := &g.runs[i]; r.Kind != core.VerdictExtend && id-r.First < r.Count {
			return true
		}
	}
	return false
}

// acks reports whether any of its deliveries can be acked.
func (g *generation) acks() bool {
	for i := range g.a.Profiles {
		if g.a.Profiles[i].Ack != core.AckNone {
			return true
		}
	}
	return false
}

// statusText is the protocol's word for a status.
func statusText(s frame.SettleStatus) string {
	switch s {
	case frame.SettleDone:
		return "DONE"
	case frame.SettleStale:
		return "STALE"
	case frame.SettleUnsupported:
		return "UNSUPPORTED"
	default:
		return "FAILED"
	}
}
