// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func unsettledVoidCases() []Case {
	return []Case{
		{
			ID: "unsettled/after-timeout", Section: sectionVoid,
			Claim:   "When a hold ends, and not sooner, the delivery is void, then the message comes again where Unsettled says so.",
			Applies: applies(reads, with("a max_hold", hasHold)), Needs: needs(feeds, shortHold(hasHold)), Run: unsettledAfterTimeout,
		},
		{
			ID: "unsettled/void", Section: sectionVoid,
			Claim:   "Void tells the truth: what it says comes back does, nothing else of it, its credit returns, and verdicts for it are STALE.",
			Applies: applies(reads, with("an ack", canAck)),
			Needs:   needs(feeds, canVoid), Alone: true, Run: unsettledVoid,
		},
		{
			ID: "unsettled/disconnect", Section: sectionVoid,
			Claim:   "When the connection to the source is lost and made anew, deliveries are void before their messages come again, and the subscription goes on.",
			Applies: reads, Needs: needs(feeds, cuts), Alone: true, Run: unsettledDisconnect,
		},
	}
}

// cuts says that the subject cannot cut the plugin's connection.
func cuts(a *About) string {
	if a.Subject.Disconnect == nil {
		return "a way to cut the plugin's connection"
	}
	return ""
}

// canVoid says that the subject has nothing that makes deliveries void.
func canVoid(a *About) string {
	if cuts(a) == "" || shortHold(hasHold)(a) == "" {
		return ""
	}
	return "a way to cut the plugin's connection, or a max_hold that it waits for"
}

// unsettledAfterTimeout leaves a whole window without a verdict.
func unsettledAfterTimeout(t *Trial) {
	const window = 4
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	fed := time.Now() // no hold begins before
	all := s.feedTake(window)
	ds := t.of(all, "a max_hold", t.outlasts)
	for _, d := range all {
		if !t.outlasts(d.Caps) {
			s.Finish(d)
		}
	}
	s.awaitVoid(ds, t.holdOf(ds)+t.Subject.Late)
	for _, d := range ds {
		hold := d.Caps.MaxHold
		s.mu.Lock()
		void, when, returns := d.void, d.voidedWhen, d.returns
		s.mu.Unlock()
		switch {
		case !void:
			t.Errorf("delivery %d was not said to be void within %v of the end of its hold of %v", d.ID, t.Subject.Late, hold)
		case when.Before(fed.Add(hold - clockGrain)):
			t.Errorf("delivery %d was void %v after its message was fed: its profile says that it may stay unsettled for %v", d.ID, when.Sub(fed).Round(time.Millisecond), hold)
		case !returns && d.Caps.Unsettled == core.UnsettledOnTimeout:
			t.Errorf("the void of delivery %d says that it does not come back: its profile says that it does when its hold ends", d.ID)
		}
	}
	s.renewed(ds, s.truth(ds), byItself)
	s.leave()
}

// holdOf is the longest hold of deliveries.
func (t *Trial) holdOf(ds []*Delivery) time.Duration {
	var hold time.Duration
	for _, d := range ds {
		hold = max(hold, d.Caps.MaxHold)
	}
	return hold
}

// awaitVoid waits until deliveries are void, at most so long.
func (s *Sub) awaitVoid(ds []*Delivery, limit time.Duration) {
	s.await(limit, func() bool {
		for _, d := range ds {
			if !d.void {
				return s.over
			}
		}
		return true
	})
}

// truth compares what came with what voids said of deliveries, and returns the
// new delivery of each of which the void said that it comes back.
func (s *Sub) truth(ds []*Delivery) []*Delivery {
	var back, gone []*Delivery
	for _, d := range ds {
		s.mu.Lock()
		void, returns := d.void, d.returns
		s.mu.Unlock()
		switch {
		case !void:
			continue
		case returns:
			back = append(back, d)
		default:
			gone = append(gone, d)
		}
		if r := s.Result(frame.VerdictRun{First: d.ID, Kind: core.VerdictRelease}); r.Status != frame.SettleStale {
			s.t.Errorf("RELEASE of delivery %d, which is void, was answered %s in place of STALE", d.ID, statusWord(r.Status))
		}
	}
	const why = "a void said that they do not come back"
	again := s.again(back, keysOf(gone), why)
	s.voidFirst(back, again)
	byOld := make([]*Delivery, len(ds))
	for i, d := range ds {
		for k, b := range back {
			if b == d {
				byOld[i] = again[k]
			}
		}
	}
	if len(gone) > 0 {
		s.mustNot(s.Within(s.t.Subject.Quiet), keysOf(gone), why)
	}
	return byOld
}

// voidFirst expects that deliveries were void before their messages came again.
func (s *Sub) voidFirst(old, again []*Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range again {
		if d != nil && (!old[i].void || old[i].voidedAt >= d.ID) {
			s.t.Errorf("message %s came again as delivery %d before its delivery %d was said to be void", d.Key, d.ID, old[i].ID)
		}
	}
}

// unsettledVoid makes a whole window void, by a cut where the subject can, else
// by the end of holds.
func unsettledVoid(t *Trial) {
	const window = 6
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(window, windowBytes)
	ds := t.of(s.feedTake(window), "an ack", canAck)
	if t.Subject.Disconnect != nil {
		t.disconnect(p)
		s.awaitVoid(ds, t.Subject.Wait)
	} else {
		s.awaitVoid(ds, t.holdOf(ds)+t.Subject.Late)
	}
	void := 0
	for _, d := range ds {
		if s.voided(d) {
			void++
		}
	}
	if void == 0 {
		t.Skipf("no delivery became void: neither did the connection end nor a hold")
	}
	again := s.truth(ds)
	for i, d := range again {
		switch {
		case d != nil:
			s.expectAlive(d)
		case !s.voided(ds[i]):
			s.outlived(ds[i])
		}
	}
	// The whole window is free again.
	s.finishAll()
	s.Finish(s.first(t.putLater(p, window))...)
	s.leave()
}

// outlived acks a delivery whose connection was cut, and reports whether that
// counted. The cut may overtake the ack.
func (s *Sub) outlived(d *Delivery) bool {
	if s.voided(d) {
		return false
	}
	r := s.Result(frame.VerdictRun{First: d.ID, Kind: core.VerdictAck})
	if r.Status != frame.SettleDone && r.Status != frame.SettleStale {
		s.t.Errorf("ACK of delivery %d behind a cut connection was answered %s in place of DONE or STALE%s", d.ID, statusWord(r.Status), because(r.Fault))
	}
	return r.Status == frame.SettleDone
}

// expectAlive decides a delivery that was not said to be void.
func (s *Sub) expectAlive(d *Delivery) {
	s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
}

// disconnect cuts the plugin's connection.
func (t *Trial) disconnect(p *Process) {
	ctx, cancel := t.limited()
	defer cancel()
	if err := t.Subject.Disconnect(ctx, t.place(p, t.Subscription())); err != nil {
		t.Fatalf("the plugin's connection could not be cut: %v", err)
	}
}

// putLater feeds messages through a connection that may be on its way, and
// returns their keys.
func (t *Trial) putLater(p *Process, n int) []string {
	ms := t.Messages(t.feedName(), n, 0)
	if t.Subject.Inject != nil {
		t.Put(p, ms)
		return Keys(ms)
	}
	until := time.Now().Add(t.Subject.Wait)
	for _, m := range ms {
		for {
			r := p.Publisher().Send(Outgoing(m)...)[0].Receipt
			if r.Status == frame.ReceiptConfirmed {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("no message could be published within %v behind a cut connection: the last one was %s%s", t.Subject.Wait, receiptWord(r.Status), because(r.Fault))
			}
			pause(t.Ctx, 20*time.Millisecond)
		}
	}
	return Keys(ms)
}

// unsettledDisconnect cuts the connection with deliveries unsettled and acked.
func unsettledDisconnect(t *Trial) {
	p, s := t.reading()
	l := s.leaves(9)
	t.disconnect(p)
	var ends []*Delivery // that cannot outlive the connection
	for _, d := range l.back {
		if d.Caps.Unsettled != core.UnsettledOnTimeout {
			ends = append(ends, d)
		}
	}
	for _, d := range l.lost {
		if canAck(d.Caps) {
			ends = append(ends, d)
		}
	}
	s.awaitVoid(ends, t.Subject.Wait)
	for _, d := range ends {
		s.mu.Lock()
		void, returns := d.void, d.returns
		s.mu.Unlock()
		switch want := returnsAtAll(d.Caps); {
		case !void:
			t.Errorf("delivery %d was not said to be void within %v of the cut of its connection, if that cut anything", d.ID, t.Subject.Wait)
		case returns != want:
			t.Errorf("the void of delivery %d says %s: its profile says otherwise", d.ID, map[bool]string{true: "that it comes back", false: "that it does not come back"}[returns])
		}
	}
	s.renewed(ends, s.truth(ends), byItself)
	var leased []*Delivery // that may outlive it, and did not
	for _, d := range l.back {
		if d.Caps.Unsettled == core.UnsettledOnTimeout && !s.outlived(d) {
			leased = append(leased, d)
		}
	}
	s.renewed(leased, s.again(leased, l.barred(), leftReason), byItself)
	s.Finish(s.first(t.putLater(p, 3))...)
	s.mustNot(s.Within(t.Subject.Quiet), l.barred(), leftReason)
	s.leave()
}
