// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

func unsettledCases() []Case {
	return append([]Case{
		{
			ID: "unsettled/after-kill", Section: sectionCapabilities,
			Claim:   "After SIGKILL what was unsettled, or released, becomes what Unsettled says.",
			Applies: reads, Needs: needs(feeds, seesUnsettled), Run: unsettledAfterKill,
		},
		{
			ID: "unsettled/after-close", Section: sectionCapabilities,
			Claim:   "After an orderly end exactly what was unsettled or released comes again, where Unsettled says that it does.",
			Applies: reads, Needs: needs(feeds, seesUnsettled), Run: unsettledAfterClose,
		},
		{
			ID: "unsettled/after-cancel", Section: sectionStreams,
			Claim:   "A cancelled stream settles nothing: what was unsettled becomes what Unsettled says, and the registration can be opened again.",
			Applies: reads, Needs: needs(feeds, seesUnsettled), Run: unsettledAfterCancel,
		},
		{
			ID: "unsettled/settled-stay-gone", Section: sectionVerdicts,
			Claim:   "What was acked does not come again after a restart; what was not acked does.",
			Applies: applies(reads, with("an ack", canAck)), Needs: needs(feeds, seesUnsettled), Run: unsettledSettledStayGone,
		},
		{
			ID: "unsettled/count-after-restart", Section: sectionCapabilities,
			Claim:   "A source that counts goes on counting over requeues, restarts and kills: the first delivery is 1, each next one higher. What an orderly end left without a verdict need not count.",
			Applies: applies(reads, with("a count and deliveries that come again", func(c core.Capabilities) bool { return counts(c) && returnsAtAll(c) })),
			Needs:   needs(feeds, seesUnsettled), Run: unsettledCount,
		},
	}, slices.Concat(unsettledVoidCases(), livingCases(), durableCases())...)
}

// seesUnsettled says what the subject lacks where every profile's deliveries
// come again only behind a hold that is longer than it waits.
func seesUnsettled(a *About) string {
	if a.Any(func(c core.Capabilities) bool { return c.Unsettled != core.UnsettledOnTimeout }) {
		return ""
	}
	return shortHold(hasHold)(a)
}

// left is what a generation leaves behind, by what has to become of it.
type left struct {
	settled []*Delivery // by an ack that was DONE
	back    []*Delivery // comes again
	lost    []*Delivery // never does
	later   []*Delivery // comes again, after longer than the subject waits
}

const leftReason = "they were acked, or their profile says that what ends without a verdict is lost"

// barred are the messages that may not come again.
func (l *left) barred() []string { return slices.Concat(keysOf(l.settled), keysOf(l.lost)) }

// leaves feeds a subscription, acks a part of it and sorts the rest.
func (s *Sub) leaves(n int) *left {
	ms := s.t.headed(n)
	s.t.Put(s.p, ms)
	return s.split(s.first(Keys(ms)))
}

// releases releases every other delivery that has no verdict: it ends without
// one all the same.
func (s *Sub) releases(l *left) {
	for _, ds := range [][]*Delivery{l.back, l.lost} {
		for i, d := range ds {
			if i%2 == 0 {
				s.expect(d, frame.VerdictRun{Kind: core.VerdictRelease}, frame.SettleDone)
			}
		}
	}
}

// split acks every third delivery, of cumulative profiles the first third, and
// sorts the rest.
func (s *Sub) split(ds []*Delivery) *left {
	l := &left{}
	sorted := slices.Clone(ds)
	sortByID(sorted)
	for i, d := range sorted {
		switch {
		case cumulative(d.Caps) && i < len(ds)/3, acksSingle(d.Caps) && i%3 == 1:
			if len(s.done(core.VerdictAck, d)) == 0 {
				l.later = append(l.later, d) // void already
			} else {
				l.settled = append(l.settled, d)
			}
		default:
			l.sort(s.t, d)
		}
	}
	return l
}

// sort notes what has to become of a delivery that ends without a verdict.
func (l *left) sort(t *Trial, d *Delivery) {
	switch {
	case !returnsAtAll(d.Caps):
		l.lost = append(l.lost, d)
	case d.Caps.Unsettled == core.UnsettledOnTimeout && !t.outlasts(d.Caps):
		l.later = append(l.later, d)
	default:
		l.back = append(l.back, d)
	}
}

// unsettledAfterKill allows for acks that were accepted and not handed over.
func unsettledAfterKill(t *Trial) {
	p, s := t.reading()
	l := s.leaves(9)
	s.releases(l)
	p.Kill()
	_, s = t.reading()
	again := s.again(l.back, keysOf(l.lost), leftReason)
	s.renewed(l.back, again, byTheKill)
	s.unconfirmed(l)
	s.absent(keysOf(l.lost), leftReason)
	s.leave()
}

// unconfirmed notes acked messages that came again behind a kill.
func (s *Sub) unconfirmed(l *left) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range s.all {
		if slices.ContainsFunc(l.settled, func(o *Delivery) bool { return o.Key == d.Key }) {
			n++
		}
	}
	if n > 0 {
		s.t.Notef("%d of %d messages whose ACK was DONE came again behind SIGKILL", n, len(l.settled))
	}
}

func unsettledAfterClose(t *Trial) {
	p, s := t.reading()
	l := s.leaves(9)
	s.releases(l)
	s.End()
	p.Close()
	_, s = t.reading()
	again := s.again(l.back, l.barred(), leftReason)
	s.renewed(l.back, again, inOrder)
	s.absent(l.barred(), leftReason)
	s.leave()
}

// unsettledAfterCancel looks for what was unsettled in the same process first: a
// source that gives back what a connection has when that ends may hold it until
// the process ends.
func unsettledAfterCancel(t *Trial) {
	p, s := t.reading()
	l := s.leaves(9)
	s.releases(l)
	s.Cancel()
	s = p.subscribeAgain()
	limit := 2 * t.Subject.Quiet
	for _, d := range l.back {
		if d.Caps.Unsettled == core.UnsettledOnTimeout {
			limit = t.comeBackLimit(l.back)
		}
	}
	came, more := s.collect(l.back, limit)
	s.mustNot(more, l.barred(), leftReason)
	s.letGo(more...)
	s.once(l.back, more)
	s.renewed(l.back, came, byItself)
	if len(without(l.back, came)) == 0 {
		s.absent(l.barred(), leftReason)
		s.settleAnew(l, came)
		return
	}
	t.Notef("what was unsettled on a cancelled stream comes again when the process ends")
	for i, d := range came {
		if d == nil {
			came[i] = l.back[i]
		}
	}
	s.End()
	p.Close()
	_, s = t.reading()
	again := s.again(came, l.barred(), leftReason)
	s.renewed(came, again, inOrder)
	s.absent(l.barred(), leftReason)
	s.leave()
}

// settleAnew acks all but the last of what came again on a new stream, whose ids
// begin at 1 like those of the former one, and looks in a new process which
// messages that settled.
func (s *Sub) settleAnew(l *left, came []*Delivery) {
	next := &left{}
	came = slices.Clone(came)
	sortByID(came)
	for i, d := range came {
		switch {
		case i == len(came)-1 || !canAck(d.Caps):
			next.sort(s.t, d)
		case len(s.done(core.VerdictAck, d)) == 1:
			next.settled = append(next.settled, d)
		}
	}
	s.End()
	s.p.Close()
	_, s = s.t.reading()
	barred := slices.Concat(l.barred(), next.barred())
	s.again(next.back, barred, leftReason)
	s.absent(barred, leftReason)
	s.leave()
}

// subscribeAgain opens the subscription whose stream was cancelled. It may be
// refused as taken as long as the plugin has not noticed.
func (p *Process) subscribeAgain() *Sub {
	for until := time.Now().Add(p.t.Subject.Wait); ; {
		s, err := p.open(p.t.registration())
		if err == nil {
			s.Credit(windowMessages, windowBytes)
			return s
		}
		if link.AsFault(err).Code != core.FaultConflict || time.Now().After(until) {
			p.t.Fatalf("the subscription cannot be opened again behind a cancelled stream: %v", err)
		}
		pause(p.t.Ctx, 10*time.Millisecond)
	}
}

// unsettledSettledStayGone restarts in order, then by a kill, and acks in both
// generations.
func unsettledSettledStayGone(t *Trial) {
	p, s := t.reading()
	l := s.leaves(12)
	s.End()
	p.Close()

	p, s = t.reading()
	again := present(s.again(l.back, l.barred(), leftReason))
	next := s.split(again)
	p.Kill()

	_, s = t.reading()
	s.again(next.back, l.barred(), leftReason)
	s.unconfirmed(next)
	s.absent(l.barred(), leftReason)
	s.leave()
}

// unsettledCount brings messages through every way of coming again.
func unsettledCount(t *Trial) {
	p, s := t.reading()
	ds := t.of(s.feedTake(6), "a count", func(c core.Capabilities) bool {
		return counts(c) && returnsAtAll(c) && (c.Unsettled != core.UnsettledOnTimeout || t.outlasts(c))
	})
	for _, d := range ds {
		if d.Attempt != 1 {
			t.Errorf("the first delivery of message %s has attempt %d in place of 1", d.Key, d.Attempt)
		}
	}
	var back []*Delivery
	for _, d := range ds {
		if canRequeue(d.Caps) {
			back = append(back, d)
		}
	}
	next := func(old []*Delivery, by endedBy) []*Delivery {
		again := s.again(old, nil, "")
		s.renewed(old, again, by)
		if by == inOrder && slices.ContainsFunc(again, func(d *Delivery) bool {
			return d != nil && slices.ContainsFunc(old, func(o *Delivery) bool { return o.Key == d.Key && o.Attempt == d.Attempt })
		}) {
			t.Notef("what an orderly end leaves without a verdict is not counted")
		}
		return present(again)
	}
	if len(back) == len(ds) {
		ds = next(s.done(core.VerdictRequeue, back...), byRequeue)
	}
	s.End()
	p.Close()
	p, s = t.reading()
	ds = next(ds, inOrder)
	p.Kill()
	_, s = t.reading()
	next(ds, byTheKill)
	s.leave()
}
