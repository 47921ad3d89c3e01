// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"maps"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
)

func stopCases() []Case {
	return append([]Case{
		{
			ID: "stop/idle", Section: sectionStreams,
			Claim:   "Stop of a subscription that has nothing to deliver is answered with ended without a fault, half-close with the end of the stream.",
			Applies: reads, Run: stopIdle,
		},
		{
			ID: "stop/under-load", Section: sectionStreams,
			Claim:   "Stop in the middle of traffic loses nothing: what was fed is settled or comes again, and nothing is delivered behind ended.",
			Applies: reads, Needs: feeds, Run: stopUnderLoad,
		},
		{
			ID: "stop/verdicts-after", Section: sectionStreams,
			Claim:   "Behind ended verdicts are carried out and answered until the host half-closes, the last ones before the stream ends.",
			Applies: applies(reads, with("an ack", canAck)), Needs: feeds, Run: stopVerdictsAfter,
		},
		{
			ID: "stop/close-settles-nothing", Section: sectionCalls,
			Claim: "Close sends no verdict of its own: what is unsettled comes again.",
			Applies: applies(reads, with("what is unsettled coming again", returnsAtAll), func(a *About) string {
				if !soon(a) {
					return "what is unsettled comes again after a long hold, or not at all"
				}
				return ""
			}),
			Needs: feeds, Run: stopCloseSettlesNothing,
		},
		{
			ID: "stop/close-over-streams", Section: sectionCalls,
			Claim:   "Close over open streams ends intake with ended; a verdict that comes later is FAILED and a message REFUSED, both with CLOSED.",
			Applies: reads, Run: stopCloseOverStreams,
		},
		{
			ID: "stop/reopen", Section: sectionCalls,
			Claim:   "A registration whose stream has ended can be opened again on the same process, and goes on with what is fed then.",
			Applies: reads, Needs: feeds, Run: stopReopen,
		},
	}, cutCases()...)
}

// stopIdle stops before credit, behind it, and behind deliveries.
func stopIdle(t *Trial) {
	p := t.Connected()
	ends := func(when string, s *Sub) {
		s.Stop()
		s.mu.Lock()
		fault := convert.ToFault(s.ended.GetFault())
		s.mu.Unlock()
		if fault != nil && fault.Code != core.FaultCanceled {
			t.Errorf("stop %s is answered with ended and the fault of something else: %v (%v)", when, fault, fault.Code)
		}
		s.HalfClose()
	}
	ends("before any credit", p.Open(t.registration()))
	ends("with room and nothing to deliver", p.Subscribe())
	if t.About.feeds() == "" {
		s := p.Subscribe()
		s.Finish(s.feedTake(3)...)
		s.Barrier()
		ends("once everything is settled", s)
	}
	p.Close()
}

// account is what has become of the messages of a case.
type account struct {
	fed      []string
	settled  map[string]bool // by a verdict that was accepted
	left     []*Delivery     // delivered and not settled
	surplus  int             // deliveries of one message beyond the first
	delivery map[string]bool
}

// take notes deliveries.
func (a *account) take(ds ...*Delivery) {
	for _, d := range ds {
		if a.delivery[d.Key] {
			a.surplus++
		}
		a.delivery[d.Key] = true
	}
}

// stopUnderLoad stops while messages come in and go out, and counts in a new
// process.
func stopUnderLoad(t *Trial) {
	const messages, window, early = 200, 50, 40
	a := &account{settled: map[string]bool{}, delivery: map[string]bool{}}
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	first := t.inject(p, t.Messages(t.feedName(), messages, 0))
	second := t.inject(p, t.Messages(t.feedName(), messages, 0))
	ds := s.Take(early)
	a.take(ds...)
	t.settle(s, a, ds...)
	s.Stop()
	rest := s.remaining()
	a.take(rest...)
	if soon(t.About) { // settle half of them, in order, for cumulative acks
		a.left = rest[len(rest)/2:]
		rest = rest[:len(rest)/2]
	}
	t.settle(s, a, rest...)
	s.HalfClose()
	a.fed = append(first(), second()...)
	p.Close()
	if !t.About.All(returnsAtAll) {
		t.Notef("%d of %d messages were delivered; the others may be lost, as those are that this transport does not deliver again", len(a.delivery), len(a.fed))
		return
	}
	t.balance(a)
}

// remaining takes all deliveries that have come.
func (s *Sub) remaining() []*Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.queue
	s.queue = nil
	return ds
}

// settle acks deliveries and notes those whose ack was accepted. What cannot be
// acked is let go.
func (t *Trial) settle(s *Sub, a *account, ds ...*Delivery) {
	if len(ds) == 0 {
		return
	}
	runs := make([]frame.VerdictRun, 0, len(ds))
	for _, d := range ds {
		kind := core.VerdictAck
		if !canAck(d.Caps) {
			kind = core.VerdictRelease
		}
		runs = append(runs, frame.VerdictRun{First: d.ID, Kind: kind})
	}
	for i, r := range s.Results(runs...) {
		switch {
		case r.Status == frame.SettleDone && canAck(ds[i].Caps):
			a.settled[ds[i].Key] = true
		case r.Status != frame.SettleDone && !s.voided(ds[i]):
			t.Errorf("%s of delivery %d, which was delivered and not settled, is answered %s%s", verdictWord(&runs[i]), ds[i].ID, statusWord(r.Status), because(r.Fault))
		}
	}
}

// balance reads in a new process what was not settled: fed = settled +
// outstanding.
func (t *Trial) balance(a *account) {
	p, s := t.reading()
	missing := map[string]bool{}
	for _, k := range a.fed {
		if !a.settled[k] {
			missing[k] = true
		}
	}
	outstanding := len(missing)
	seen := map[string]int{}
	note := func(d *Delivery) {
		s.Finish(d) // at once: a hold may be short
		delete(missing, d.Key)
		if seen[d.Key]++; seen[d.Key] > 1 {
			a.surplus++
		}
	}
	for until := time.Now().Add(t.Subject.Wait); len(missing) > 0 && s.more(time.Until(until)); {
		note(s.Next())
	}
	for _, d := range s.Within(t.Subject.Quiet) {
		note(d)
	}
	if len(missing) > 0 {
		t.Errorf("fed %d = settled %d + outstanding %d, and of the outstanding messages %d were not delivered within %v: %s%s",
			len(a.fed), len(a.settled), outstanding, len(missing), t.Subject.Wait, some(slices.Sorted(maps.Keys(missing))), s.state())
	}
	var again []string
	for k := range a.settled {
		if seen[k] > 0 {
			again = append(again, k)
		}
	}
	if len(again) > 0 {
		t.Errorf("%d of %d messages that were settled, and whose results were DONE, came again in a new process: %s", len(again), len(a.settled), some(again))
	}
	t.Notef("fed %d = settled %d + outstanding %d; of those %d had been delivered; %d deliveries were duplicates", len(a.fed), len(a.settled), outstanding, len(a.left), a.surplus)
	s.Barrier()
	s.End()
	p.Close()
}

// stopVerdictsAfter settles behind ended.
func stopVerdictsAfter(t *Trial) {
	const messages, behind = 12, 4
	p, s := t.reading()
	ds := s.feedTake(messages)
	slices.SortFunc(ds, func(a, b *Delivery) int { return int(a.ID) - int(b.ID) })
	s.Stop()
	a := &account{settled: map[string]bool{}, delivery: map[string]bool{}}
	for _, d := range ds {
		a.fed = append(a.fed, d.Key)
	}
	t.settle(s, a, ds[:behind]...)
	last := make([]frame.VerdictRun, 0, behind)
	for _, d := range ds[behind : 2*behind] {
		last = append(last, frame.VerdictRun{First: d.ID, Kind: core.VerdictAck, WantResult: true})
	}
	sent := s.Settle(last...)
	s.HalfClose() // sees that every result came before the end
	s.mu.Lock()
	for i, v := range sent {
		d := ds[behind+i]
		switch {
		case v.settled && v.result.Status == frame.SettleDone:
			a.settled[d.Key] = true
		case v.settled && canAck(d.Caps) && !d.void:
			t.Errorf("an ack right before the half-close is answered %s in place of DONE%s", statusWord(v.result.Status), because(v.result.Fault))
		}
	}
	s.mu.Unlock()
	p.Close()
	if soon(t.About) {
		t.balance(a)
	}
}

// stopCloseSettlesNothing closes over open streams and behind ended ones.
func stopCloseSettlesNothing(t *Trial) {
	const messages = 8
	for _, ends := range []bool{false, true} {
		p, s := t.reading()
		ds := s.feedTake(messages)
		if ends {
			s.End()
		}
		p.Close()
		p, s = t.reading()
		again := s.again(ds, nil, "")
		if t.Failed() {
			return
		}
		s.renewed(ds, again, inOrder)
		s.Finish(again...)
		s.Barrier()
		s.End()
		p.Close()
	}
}

// stopCloseOverStreams closes in the middle of everything and goes on.
func stopCloseOverStreams(t *Trial) {
	p := t.Connected()
	s := p.Subscribe()
	var open []*Delivery
	if t.About.feeds() == "" {
		open = s.feedTake(2)
	}
	var b *Publisher
	if t.About.Publishing != nil {
		b = p.Publisher()
		b.Confirmed(Outgoing(t.Messages(t.Destination(), 1, 0)...)...)
	}
	p.closing()
	if !s.until(func() bool { return s.ended != nil || s.over }) {
		t.Fatalf("Close did not end the intake of an open subscription: no ended came within %v", t.Subject.Wait)
	}
	closed := func(what string, fault *core.Fault) {
		if fault == nil || fault.Code != core.FaultClosed {
			t.Errorf("%s behind Close has no fault CLOSED but %v", what, fault)
		}
	}
	s.mu.Lock()
	over, err := s.over, s.err
	s.mu.Unlock()
	if over {
		t.Fatalf("Close ended the stream of an open subscription (%v): its intake ends with ended, and the stream with the host's half-close", err)
	}
	for _, d := range open {
		if !canAck(d.Caps) {
			continue
		}
		r := s.Result(frame.VerdictRun{First: d.ID, Kind: core.VerdictAck})
		switch {
		case s.voided(d) && r.Status == frame.SettleStale:
		case r.Status != frame.SettleFailed:
			t.Errorf("ACK of delivery %d behind Close is answered %s in place of FAILED", d.ID, statusWord(r.Status))
		default:
			closed("the result of an ACK", r.Fault)
		}
	}
	if b != nil {
		sent := b.Send(Outgoing(t.Messages(t.Destination(), 1, 0)...)...)[0]
		if r := sent.Receipt; r.Status != frame.ReceiptRefused {
			t.Errorf("a message behind Close has the receipt %s in place of REFUSED", receiptWord(r.Status))
		} else {
			closed("the receipt of a message", r.Fault)
		}
		b.HalfClose()
	}
	s.HalfClose()
	p.Unleash()
}

// stopReopen opens one registration again and again.
func stopReopen(t *Trial) {
	const rounds, messages = 5, 4
	p := t.Connected()
	for range rounds {
		s := p.Subscribe()
		s.Finish(s.feedTake(messages)...)
		s.Barrier()
		s.End()
	}
	p.Close()
}
