// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func settleBackCases() []Case {
	return []Case{
		{
			ID: "settle/requeue", Section: sectionVerdicts,
			Claim:   "REQUEUE brings the message back unchanged, one attempt higher where the source counts, as often as it is sent.",
			Applies: applies(reads, with("a requeue", canRequeue)), Needs: feeds, Run: settleRequeue,
		},
		{
			ID: "settle/requeue-delayed", Section: sectionVerdicts,
			Claim:   "REQUEUE with a delay brings the message back no sooner; its credit returns at once and others go on.",
			Applies: applies(reads, with("a delayed requeue", canDelay)), Needs: feeds, Run: settleDelayed,
		},
		rewindCase(),
		{
			ID: "settle/reject", Section: sectionVerdicts,
			Claim:   "REJECT gets rid of the message for good: it does not come again, after a restart either.",
			Applies: applies(reads, with("a reject", canReject)), Needs: feeds, Run: settleReject,
		},
		{
			ID: "settle/release", Section: sectionVerdicts,
			Claim:   "RELEASE tells the source nothing: the message stays away while the stream is open, then becomes what Unsettled says.",
			Applies: reads, Needs: needs(feeds, seesUnsettled), Run: settleRelease,
		},
		{
			ID: "settle/extend", Section: sectionVerdicts,
			Claim:   "EXTEND prolongs the hold: beyond max_hold the delivery is neither void nor sent again, and can be settled.",
			Applies: applies(reads, with("a hold that can be prolonged", canExtend)),
			Needs:   needs(feeds, shortHold(canExtend)), Run: settleExtend,
		},
	}
}

// needs joins what a subject may lack: the first reason counts.
func needs(conditions ...func(a *About) string) func(a *About) string { return applies(conditions...) }

// shortHold says what the subject lacks where every hold of profiles as f asks
// is longer than it waits.
func shortHold(f func(c core.Capabilities) bool) func(a *About) string {
	return func(a *About) string {
		limit := a.Subject.MaxHold
		if a.Any(func(c core.Capabilities) bool { return f(c) && c.MaxHold <= limit }) {
			return ""
		}
		return fmt.Sprintf("a max_hold of at most %v, which is how long it waits for one", limit)
	}
}

// outlasts reports whether a case waits for the end of a hold.
func (t *Trial) outlasts(c core.Capabilities) bool {
	return hasHold(c) && c.MaxHold <= t.Subject.MaxHold
}

func settleRequeue(t *Trial) {
	const rounds = 3
	p, s := t.reading()
	ms := t.headed(4)
	t.Put(p, ms)
	ds := t.of(s.first(Keys(ms)), "a requeue", canRequeue)
	soonest, hold := t.Subject.Wait, time.Duration(0)
	for _, d := range ds {
		if counts(d.Caps) && !hasHold(d.Caps) && d.Attempt != 1 && !t.About.Shared {
			t.Errorf("the first delivery of message %s has attempt %d in place of 1", d.Key, d.Attempt)
		}
	}
	for range rounds {
		sent := time.Now()
		ds = s.done(core.VerdictRequeue, ds...)
		again := s.again(ds, nil, "")
		s.renewed(ds, again, byRequeue)
		ds = present(again)
		for _, d := range ds {
			soonest, hold = min(soonest, d.At.Sub(sent)), d.Caps.MaxHold
		}
	}
	if hold > 0 && soonest > hold/2 {
		t.Errorf("REQUEUE at once brought no message back sooner than after %v: they came because max_hold, %v, was over",
			soonest.Round(time.Millisecond), hold)
	}
	done := s.done(core.VerdictAck, ds...)
	s.absent(keysOf(done), "ACK was DONE")
	s.leave()
}

// present leaves out what did not come.
func present(ds []*Delivery) []*Delivery {
	var some []*Delivery
	for _, d := range ds {
		if d != nil {
			some = append(some, d)
		}
	}
	return some
}

// delays are those that a case tries, within the profile's limits.
func delays(c core.Capabilities) []time.Duration {
	ds := []time.Duration{300 * time.Millisecond, time.Second}
	limit := c.MaxDelay
	if c.MaxHold > 0 && (limit == 0 || c.MaxHold < limit) {
		limit = c.MaxHold
	}
	if limit > 0 && limit < 2*ds[1] {
		ds = []time.Duration{limit / 6, limit / 3}
	}
	return ds
}

func settleDelayed(t *Trial) {
	p, s := t.reading()
	ms := t.headed(4)
	fed := time.Now()
	t.Put(p, ms)
	ds := t.of(s.first(Keys(ms)), "a delayed requeue", canDelay)
	ready := make([]time.Time, len(ds)) // before it no delay is over
	delay := make([]time.Duration, len(ds))
	for i, d := range ds {
		choice := delays(d.Caps)
		delay[i] = choice[i%len(choice)]
		ready[i] = time.Now().Add(delay[i])
		s.expect(d, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: delay[i]}, frame.SettleDone)
	}
	again := s.again(ds, nil, "")
	var latest time.Duration
	for i, d := range again {
		if d == nil {
			continue
		}
		late := d.At.Sub(ready[i])
		switch held := ds[i].Caps.MaxHold; {
		case late < -clockGrain && held > 0 && d.At.Sub(fed) >= held:
			t.Notef("the hold of a delivery ended before the delay of its REQUEUE")
		case late < -clockGrain:
			t.Errorf("message %s came again %v after a REQUEUE with a delay of %v", d.Key, (delay[i] + late).Round(time.Millisecond), delay[i])
		case late > t.Subject.Late:
			t.Errorf("message %s came again %v later than its delay of %v ended: the limit is %v", d.Key, late.Round(time.Millisecond), delay[i], t.Subject.Late)
		default:
			latest = max(latest, late)
		}
	}
	t.Notef("the latest of %d delayed messages came %v behind its time", len(again), latest.Round(time.Millisecond))
	s.renewed(ds, again, byRequeue)
	s.done(core.VerdictAck, present(again)...)
	t.delayReturnsCredit(p, s)
	s.leave()
}

// delayReturnsCredit requeues with a delay that outlasts the case and expects
// the next message in a window of one.
func (t *Trial) delayReturnsCredit(p *Process, s *Sub) {
	s.Credit(1, windowBytes)
	s.Barrier()
	d := s.first(t.Feed(p, 1))[0]
	if !canDelay(d.Caps) {
		return
	}
	delay := 3 * t.Subject.Wait
	if limit := d.Caps.MaxDelay; limit > 0 && limit <= delay {
		delay = limit - 1
	}
	if hasHold(d.Caps) {
		delay = min(delay, d.Caps.MaxHold/3)
	}
	if !s.expect(d, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: delay}, frame.SettleDone) {
		return
	}
	keys := t.Feed(p, 1)
	if !s.more(t.Subject.Wait) {
		t.Fatalf("no message comes into a window of 1 while one is requeued with a delay of %v: REQUEUE returns its credit at once", delay)
	}
	if next := s.Next(); next.Key != keys[0] && delay > t.Subject.Wait {
		t.Errorf("the message that was requeued with a delay of %v came before one that was fed behind it", delay)
	}
}

func settleReject(t *Trial) {
	_, s := t.reading()
	ds := t.of(s.feedTake(4), "a reject", canReject)
	fed := time.Now()
	var rejected []*Delivery
	for _, d := range ds {
		if s.expect(d, frame.VerdictRun{Kind: core.VerdictReject, Reason: "the case does not want it"}, frame.SettleDone) {
			rejected = append(rejected, d)
		}
	}
	keys := keysOf(rejected)
	s.absent(keys, "REJECT was DONE")
	s.leave()
	_, s = t.reading()
	if len(rejected) > 0 {
		// A lease of which the source was not told ends later.
		if hold := rejected[0].Caps.MaxHold; hold > 0 && hold <= min(t.Subject.MaxHold, briefHold) {
			s.waitUntil(fed.Add(hold))
		}
	}
	s.absent(keys, "REJECT was DONE before an orderly restart")
	s.leave()
}

// settleRelease releases everything, and looks for it here and behind an orderly
// restart.
func settleRelease(t *Trial) {
	p, s := t.reading()
	fed := time.Now()
	l := &left{}
	var away []*Delivery // as long as the stream is open
	for _, d := range s.feedTake(6) {
		run := frame.VerdictRun{Kind: core.VerdictRelease}
		if !s.expect(d, run, frame.SettleDone) {
			continue
		}
		s.forgotten(d, &run)
		if !hasHold(d.Caps) {
			away = append(away, d)
		}
		l.sort(t, d)
	}
	s.absent(keysOf(away), "RELEASE tells the source nothing, so it hands nothing back")
	if t.Failed() {
		return
	}
	s.End()
	p.Close()
	_, s = t.reading()
	again := s.again(l.back, keysOf(l.lost), leftReason)
	s.renewed(l.back, again, byItself)
	for i, d := range again {
		if d == nil || l.back[i].Caps.Unsettled != core.UnsettledOnTimeout {
			continue
		}
		if hold := d.Caps.MaxHold; d.At.Before(fed.Add(hold - clockGrain)) {
			t.Notef("a released message came again before its hold of %v ended", hold)
		}
	}
	s.absent(keysOf(l.lost), leftReason)
	s.leave()
}

// briefHold is the longest hold that a case waits for only to be surer.
const briefHold = 3 * time.Second

// waitUntil lets deliveries come until then.
func (s *Sub) waitUntil(then time.Time) {
	s.await(time.Until(then), func() bool { return s.over })
}

// settleExtend prolongs a hold until it has lasted much longer than max_hold.
func settleExtend(t *Trial) {
	p, s := t.reading()
	fed := time.Now()
	ds := t.of(s.first(t.Feed(p, 4)), "a hold that can be prolonged", func(c core.Capabilities) bool {
		return c.Extend && t.outlasts(c)
	})
	d := ds[0]
	for _, other := range ds[1:] {
		s.Finish(other)
	}
	full := d.Caps.MaxHold
	hold := full - full/8 // below max_hold, which is exclusive
	last, ends := fed, fed.Add(full*8/5)
	for time.Now().Before(ends) {
		sent := time.Now()
		if sent.Sub(last) > hold*4/5 {
			t.Skipf("this machine was too slow to prolong a hold of %v in time", full)
		}
		r := s.Result(frame.VerdictRun{First: d.ID, Kind: core.VerdictExtend, Hold: hold})
		if r.Status != frame.SettleDone {
			t.Fatalf("EXTEND by %v of delivery %d was answered %s in place of DONE%s, %v after it was fed; max_hold is %v",
				hold, d.ID, statusWord(r.Status), because(r.Fault), time.Since(fed).Round(time.Millisecond), full)
		}
		last = sent
		s.waitUntil(sent.Add(min(full/4, time.Until(ends))))
	}
	if time.Since(last) > hold*4/5 {
		t.Skipf("this machine was too slow to prolong a hold of %v in time", full)
	}
	if s.voided(d) {
		t.Errorf("delivery %d was said to be void though its hold was prolonged by %v every %v", d.ID, hold, full/4)
	}
	s.mustNot(s.Within(0), []string{d.Key}, "its hold was prolonged in time")
	s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	s.leave()
}
