// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func settleCases() []Case {
	return append([]Case{
		{
			ID: "settle/ack", Section: sectionVerdicts,
			Claim:   "ACK is DONE, decides its own delivery alone, and the message does not come again.",
			Applies: applies(reads, with("an ack", canAck)), Needs: feeds, Run: settleAck,
		},
		{
			ID: "settle/random-order", Section: sectionVerdicts,
			Claim:   "Deliveries may be acked in any order; nothing of it comes again, after a restart either.",
			Applies: applies(reads, with("an ack", canAck)), Needs: feeds, Run: settleRandomOrder,
		},
		{
			ID: "settle/parallel", Section: sectionCredit,
			Claim:   "A whole window of deliveries comes without waiting for a verdict.",
			Applies: reads, Needs: feeds, Run: settleParallel,
		},
		{
			ID: "settle/twice-stale", Section: sectionVerdicts,
			Claim:   "A second verdict for a delivery is STALE, whatever the first one was.",
			Applies: reads, Needs: feeds, Run: settleTwice,
		},
		{
			ID: "settle/unknown-stale", Section: sectionVerdicts,
			Claim:   "Verdicts for ids that were never sent are STALE and do not harm the stream.",
			Applies: reads, Needs: feeds, Run: settleUnknown,
		},
		{
			ID: "settle/while-idle", Section: sectionVerdicts,
			Claim:   "Verdicts are carried out while there is nothing to receive, while the window is used up, and while it is 0.",
			Applies: reads, Needs: feeds, Run: settleIdle,
		},
		{
			ID: "settle/results-in-order", Section: sectionVerdicts,
			Claim:   "Runs are carried out in order, each delivery by its own profile, and results keep that order however they are cut.",
			Applies: reads, Needs: feeds, Run: settleRuns,
		},
		{
			ID: "settle/results-unasked", Section: sectionVerdicts,
			Claim:   "A result that is not DONE is told though none was asked for; DONE is not.",
			Applies: reads, Needs: feeds, Run: settleUnasked,
		},
		{
			ID: "settle/unread", Section: sectionStreams,
			Claim: "Verdicts are taken while the host reads nothing of what the plugin sends.",
			Applies: applies(reads, func(a *About) string {
				if !a.All(returnsAtAll) {
					return "what is not read at once may be lost"
				}
				return ""
			}),
			Needs: feeds, Run: settleUnread,
		},
	}, append(append(settleBackCases(), settleOrderCases()...), besideCases()...)...)
}

// settleAck acks one after another, so that an ack that takes others along makes
// the next one stale.
func settleAck(t *Trial) {
	_, s := t.reading()
	ds := t.of(s.feedTake(8), "an ack", canAck)
	done := s.done(core.VerdictAck, ds...)
	s.absent(keysOf(done), "ACK was DONE")
	s.leave()
}

func settleRandomOrder(t *Trial) {
	const messages = 60
	_, s := t.reading()
	ds := s.feedTake(messages)
	shuffled := append([]*Delivery(nil), ds...)
	order := rand.New(rand.NewPCG(4, messages)) //nolint:gosec // the same order in every run
	order.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	var runs []frame.VerdictRun
	var acked []*Delivery
	for _, d := range shuffled {
		if canAck(d.Caps) {
			runs = append(runs, frame.VerdictRun{First: d.ID, Kind: core.VerdictAck})
			acked = append(acked, d)
		}
	}
	var settled []string
	for i, r := range s.Results(runs...) {
		d := acked[i]
		switch {
		case r.Status == frame.SettleDone, r.Status == frame.SettleStale && cumulative(d.Caps):
			settled = append(settled, d.Key)
		case r.Status == frame.SettleStale && s.overtaken(d):
		default:
			t.Errorf("ACK of delivery %d, number %d of %d in random order, was answered %s in place of DONE%s", d.ID, i+1, len(runs), statusWord(r.Status), because(r.Fault))
		}
	}
	s.leave()
	_, s = t.reading()
	s.absent(settled, "they were acked in random order, all DONE, before an orderly restart")
	s.leave()
}

// settleParallel takes a host's smallest window of deliveries.
func settleParallel(t *Trial) {
	const window = 64
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	keys := t.Feed(p, window)
	ds := s.first(keys)
	if len(ds) == window {
		s.finishAll()
		s.first(t.Feed(p, window)) // and the window is free again
	}
	s.leave()
}

func settleTwice(t *Trial) {
	_, s := t.reading()
	kinds := []core.VerdictKind{core.VerdictAck, core.VerdictRequeue, core.VerdictReject, core.VerdictRelease}
	for i, d := range s.feedTake(2 * len(kinds)) {
		first := kinds[i%len(kinds)]
		if !allowed(d.Caps, first) {
			first = core.VerdictRelease
		}
		if !s.expect(d, frame.VerdictRun{Kind: first}, frame.SettleDone) {
			continue
		}
		for _, second := range []core.VerdictKind{core.VerdictAck, core.VerdictRelease, core.VerdictRequeue} {
			r := s.Result(frame.VerdictRun{First: d.ID, Kind: second})
			if r.Status != frame.SettleStale {
				t.Errorf("%v of delivery %d behind its %v, which was DONE, was answered %s in place of STALE", second, d.ID, first, statusWord(r.Status))
			}
		}
	}
	s.leave()
}

// allowed reports whether a profile allows a verdict without delay.
func allowed(c core.Capabilities, kind core.VerdictKind) bool {
	switch kind {
	case core.VerdictAck:
		return canAck(c)
	case core.VerdictRequeue:
		return canRequeue(c)
	case core.VerdictReject:
		return canReject(c)
	case core.VerdictExtend:
		return canExtend(c)
	default:
		return kind == core.VerdictRelease
	}
}

func settleUnknown(t *Trial) {
	p, s := t.reading()
	never := func(when string, ids ...uint64) {
		for _, id := range ids {
			for _, kind := range []core.VerdictKind{core.VerdictAck, core.VerdictRelease, core.VerdictRequeue, core.VerdictReject, core.VerdictExtend} {
				run := frame.VerdictRun{First: id, Kind: kind}
				if kind == core.VerdictExtend {
					run.Hold = time.Second
				}
				if r := s.Result(run); r.Status != frame.SettleStale {
					t.Errorf("%s of delivery %d, which was never sent, was answered %s in place of STALE (%s)", verdictWord(&run), id, statusWord(r.Status), when)
				}
			}
		}
	}
	never("before the first delivery", 0, 1, 2, 1000, 1<<62)
	d := s.feedTake(1)[0]
	never("with one delivery unsettled", 0, 1000, 1<<62)
	s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	s.first(t.Feed(p, 1))
	s.leave()
}

// ending is the verdict that lets go of a delivery for good where one does.
func ending(c core.Capabilities) core.VerdictKind {
	if canAck(c) {
		return core.VerdictAck
	}
	return core.VerdictRelease
}

// settleIdle asks for results while the plugin has nothing to do but wait.
func settleIdle(t *Trial) {
	p := t.Connected()
	s := p.Open(t.registration())
	prompt := t.Subject.Wait / 4
	decide := func(d *Delivery, when string) {
		begun := time.Now()
		s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
		if took := time.Since(begun); took > prompt {
			t.Errorf("a verdict was answered after %v %s", took.Round(time.Millisecond), when)
		}
	}
	s.Credit(windowMessages, windowBytes)
	ds := s.feedTake(3)
	s.Barrier()
	s.extra(s.Within(t.Subject.Quiet / 5)) // so that it waits
	for _, d := range ds {
		decide(d, "while there was nothing to receive")
	}
	s.Credit(1, windowBytes)
	s.Barrier()
	d := s.feedTake(1)[0]
	s.extra(s.Within(t.Subject.Quiet / 5))
	decide(d, "while the window was used up")
	d = s.feedTake(1)[0]
	s.Credit(0, 0)
	s.Barrier()
	s.extra(s.Within(t.Subject.Quiet / 5))
	decide(d, "while the window was 0")
	s.Barrier()
	s.End()
	p.Close()
}

// settleRuns sends runs that hold deliveries of every kind, ids that were never
// sent and ids that are gone.
func settleRuns(t *Trial) {
	const beyond, many = 1 << 40, 2000
	_, s := t.reading()
	ds := s.feedTake(12)
	s.mu.Lock()
	last := uint64(len(s.all))
	s.mu.Unlock()
	at := map[uint64]*Delivery{}
	for _, d := range ds {
		at[d.ID] = d
	}
	gone := map[uint64]bool{}
	runs := []frame.VerdictRun{
		{First: 11, Count: many, Kind: core.VerdictAck}, // the first of them are there
		{First: 1, Count: 3, Kind: core.VerdictAck},
		{First: 0, Kind: core.VerdictRelease},
		{First: 4, Count: 2, Kind: core.VerdictRelease},
		{First: 1, Count: 6, Kind: core.VerdictAck}, // the last of them is there
		{First: beyond, Count: many, Kind: core.VerdictRequeue},
		{First: 7, Count: 2, Kind: core.VerdictReject, Reason: "not wanted"},
		{First: 8, Count: 0, Kind: core.VerdictRelease}, // 0 is read as 1
		{First: 9, Count: 2, Kind: core.VerdictRequeue},
	}
	var want []frame.SettleStatus
	var which []string
	for _, r := range runs {
		for id := r.First; id < r.First+max(r.Count, 1); id++ {
			which = append(which, fmt.Sprintf("%v of delivery %d", r.Kind, id))
			d := at[id]
			switch {
			case id == 0 || id > last || gone[id]:
				want = append(want, frame.SettleStale)
				continue
			case d == nil: // a delivery that came beside them, which is let go already
				want = append(want, frame.SettleStale)
				continue
			case allowed(d.Caps, r.Kind):
				want = append(want, frame.SettleDone)
			default:
				want = append(want, frame.SettleUnsupported)
			}
			gone[id] = true
		}
	}
	got := s.Results(runs...)
	for i := range got {
		if got[i].Status == want[i] {
			continue
		}
		id := s.verdictID(i, len(got))
		if d := at[id]; d != nil && got[i].Status == frame.SettleStale && (cumulative(d.Caps) || s.overtaken(d)) {
			continue
		}
		t.Errorf("%s was answered %s in place of %s%s", which[i], statusWord(got[i].Status), statusWord(want[i]), because(got[i].Fault))
	}
	s.leave()
}

// verdictID is the id that the i-th of the last n verdicts was for.
func (s *Sub) verdictID(i, n int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdicts[len(s.verdicts)-n+i].id
}

// settleUnasked wants no results but that of a last verdict, which says that all
// before it are there.
func settleUnasked(t *Trial) {
	_, s := t.reading()
	ds := s.feedTake(3)
	s.expect(ds[0], frame.VerdictRun{Kind: ending(ds[0].Caps)}, frame.SettleDone)
	unasked := s.Settle(
		frame.VerdictRun{First: ds[0].ID, Kind: core.VerdictRelease},
		frame.VerdictRun{First: 1 << 40, Kind: core.VerdictAck},
		frame.VerdictRun{First: ds[1].ID, Kind: 99},
		frame.VerdictRun{First: ds[2].ID, Kind: ending(ds[2].Caps)}, // the watch sees a DONE
	)
	s.Barrier()
	var told []frame.SettleStatus
	s.mu.Lock()
	for _, v := range unasked {
		told = append(told, v.result.Status)
	}
	s.mu.Unlock()
	for i, want := range []frame.SettleStatus{frame.SettleStale, frame.SettleStale, frame.SettleUnsupported} {
		switch {
		case told[i] == want, i == 2 && told[i] == frame.SettleStale && s.overtaken(ds[1]):
		case told[i] == frame.SettleUnspecified:
			t.Errorf("%s of delivery %d was not told since no result was wanted: every result that is not DONE is told", statusWord(want), unasked[i].id)
		default:
			t.Errorf("a verdict for delivery %d was answered %s in place of %s", unasked[i].id, statusWord(told[i]), statusWord(want))
		}
	}
	s.leave()
}

// settleUnread sends more verdicts than the connection buffers while the plugin
// has more to send than the connection buffers.
func settleUnread(t *Trial) {
	const messages, size, frames, runs = 200, 16 << 10, 24, 1000
	p := t.Connected()
	s := p.Open(t.registration())
	bytes := size
	if a := t.About.Publishing; a != nil && a.MaxBytes > 0 {
		bytes = min(bytes, int(a.MaxBytes/2))
	}
	ms := t.Messages(t.feedName(), messages, bytes)
	t.Put(p, ms)
	s.reading.Lock()
	s.Credit(windowMessages, windowBytes)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range frames {
			rs := make([]frame.VerdictRun, runs)
			for i := range rs {
				rs[i] = frame.VerdictRun{First: uint64(1<<40 + i), Kind: core.VerdictRelease}
			}
			s.Settle(rs...)
		}
	}()
	timer := time.NewTimer(t.Subject.Wait)
	defer timer.Stop()
	select {
	case <-sent:
		s.reading.Unlock()
	case <-timer.C:
		s.reading.Unlock()
		t.Errorf("%d verdicts could not be sent within %v while the host read nothing: no side may stop reading because it waits for its own writes", frames*runs, t.Subject.Wait)
		s.Cancel()
		<-sent
		return
	case <-t.Ctx.Done():
		s.reading.Unlock()
		s.Cancel()
		<-sent
		return
	}
	s.first(Keys(ms))
	s.leave()
}
