// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func settleOrderCases() []Case {
	return []Case{
		{
			ID: "settle/cumulative", Section: sectionVerdicts,
			Claim:   "A cumulative ACK settles nothing behind it and nothing of other scopes.",
			Applies: applies(reads, with("cumulative acks", cumulative)), Needs: feeds, Run: settleCumulative,
		},
		{
			ID: "settle/order", Section: sectionCapabilities,
			Claim:   "Messages come in the order that the profile says: as they were fed, in all or within each scope.",
			Applies: applies(reads, with("an order", ordered)), Needs: feeds, Run: settleOrder,
		},
		{
			ID: "settle/identity", Section: sectionDeliveries,
			Claim:   "An identity is the same on every redelivery of a message, and no two messages share one.",
			Applies: reads, Needs: feeds, Run: settleIdentity,
		},
		{
			ID: "settle/caught-up", Section: sectionDeliveries,
			Claim:   "caught_up comes only when all there is has been delivered.",
			Applies: reads, Needs: feeds, Run: settleCaughtUp,
		},
		{
			ID: "settle/published-at", Section: sectionDeliveries,
			Claim:   "published_at says, in nanoseconds since 1970, when the message was published, or is 0.",
			Applies: reads, Needs: feeds, Run: settlePublishedAt,
		},
	}
}

// settleCumulative acks the third delivery of a scope before the first two, and
// in the next generation the second one alone: all that is behind comes again.
// Whether what is before an ack is settled with it is the plugin's choice until
// that is acked itself.
func settleCumulative(t *Trial) {
	_, s := t.reading()
	ds := t.of(s.feedTake(12), "cumulative acks", cumulative)
	of := func(ds []*Delivery) (scope []*Delivery) {
		for _, d := range ds {
			if d.Scope == ds[0].Scope {
				scope = append(scope, d)
			}
		}
		return scope
	}
	scope := of(ds)
	if len(scope) < 3 {
		t.Skipf("only %d of %d messages came in one scope", len(scope), len(ds))
	}
	acked := map[uint64]bool{}
	for _, i := range []int{2, 0, 1} {
		r := s.Result(frame.VerdictRun{First: scope[i].ID, Kind: core.VerdictAck})
		if acked[scope[i].ID] = true; r.Status != frame.SettleDone && (i == 2 || r.Status != frame.SettleStale) {
			t.Errorf("ACK of delivery %d was answered %s in place of DONE%s", scope[i].ID, statusWord(r.Status), because(r.Fault))
		}
	}
	var left []*Delivery
	for _, d := range ds {
		if !acked[d.ID] && returnsAtAll(d.Caps) {
			left = append(left, d)
		}
	}
	s.End()
	s.p.Close()

	_, s = t.reading()
	again := present(s.again(left, keysOf(scope[:3]), "they were acked before an orderly restart"))
	if len(again) < 4 {
		s.leave()
		return
	}
	scope = of(again)
	if len(scope) < 2 {
		s.leave()
		return
	}
	s.done(core.VerdictAck, scope[1])
	s.End()
	s.p.Close()

	_, s = t.reading()
	left = nil
	for _, d := range again {
		if d != scope[0] && d != scope[1] {
			left = append(left, d)
		}
	}
	s.again(left, nil, "")
	s.leave()
}

// settleOrder feeds more than a frame may hold, where they are kept before there
// is credit, and looks at the first delivery of each.
func settleOrder(t *Trial) {
	const messages = 300
	p := t.Connected()
	s := p.Open(t.registration())
	if !t.About.All(returnsAtAll) { // what is not kept is read at once
		s.Credit(windowMessages, windowBytes)
	}
	keys := t.Feed(p, messages)
	s.Credit(windowMessages, windowBytes)
	number := map[string]int{}
	for i, k := range keys {
		number[k] = i
	}
	ds := s.first(keys)
	byID := make([]*Delivery, len(ds))
	copy(byID, ds)
	sortByID(byID)
	last := map[string]*Delivery{}
	for _, d := range byID {
		scope, within := "", "in all"
		switch d.Caps.Order {
		case core.OrderNone:
			continue
		case core.OrderPerScope:
			scope, within = "scope "+d.Scope, "within scope "+d.Scope
		case core.OrderTotal:
		}
		if before := last[scope]; before != nil && number[before.Key] > number[d.Key] {
			t.Fatalf("message %d of %d came behind message %d: the order is the one in which they were fed, %s", number[d.Key]+1, messages, number[before.Key]+1, within)
		}
		last[scope] = d
	}
	s.leave()
}

// settleIdentity looks at identities over requeues and a restart, and at those
// of two messages whose payloads are the same.
func settleIdentity(t *Trial) {
	p, s := t.reading()
	ds := s.feedTake(6)
	named := 0
	for i, d := range ds {
		if len(d.Identity) == 0 {
			continue
		}
		named++
		for _, other := range ds[:i] {
			if bytes.Equal(d.Identity, other.Identity) && d.Scope == other.Scope {
				t.Errorf("messages %s and %s have one identity, %q", other.Key, d.Key, d.Identity)
			}
		}
	}
	if named == 0 {
		s.leave()
		t.Exemptf("no delivery has an identity")
	}
	t.twins(p, s)
	var back, left []*Delivery
	for i, d := range ds {
		switch {
		case i%2 == 0 && canRequeue(d.Caps):
			back = append(back, d)
		case returnsAtAll(d.Caps) && d.Caps.Unsettled != core.UnsettledOnTimeout:
			left = append(left, d)
		}
	}
	back = s.done(core.VerdictRequeue, back...)
	again := s.again(back, nil, "")
	s.renewed(back, again, byRequeue)
	s.letGo(present(again)...)
	left = s.rewoundOf(left)
	s.End()
	p.Close()
	if len(left) == 0 {
		return
	}
	_, s = t.reading()
	s.renewed(left, s.again(left, nil, ""), inOrder)
	s.leave()
}

// twins feeds one message twice.
func (t *Trial) twins(p *Process, s *Sub) {
	m := t.Messages(t.feedName(), 1, 0)[0]
	t.Put(p, []core.Message{m, m})
	var came []*Delivery
	s.await(min(t.Subject.Wait/4, 5*time.Second), func() bool { return len(s.queue) >= 2 || s.over })
	for _, d := range s.Within(0) {
		if d.Key == keyOf(m.Payload) {
			came = append(came, d)
		}
	}
	if len(came) < 2 {
		t.Notef("of two messages with one payload %d came", len(came))
	} else if a, b := came[0], came[1]; len(a.Identity) > 0 && bytes.Equal(a.Identity, b.Identity) && a.Scope == b.Scope {
		t.Errorf("two messages with one payload have one identity, %q: it says which message it is", a.Identity)
	}
	s.letGo(came...)
}

// settleCaughtUp feeds more than the window takes, so that caught_up would be
// wrong most of the time.
func settleCaughtUp(t *Trial) {
	const messages = 40
	p := t.Connected()
	s := p.Open(t.registration())
	window := uint64(windowMessages) // what is not kept is read at once
	if t.About.All(canAck) {
		window = 4
	}
	s.Credit(window, windowBytes)
	keys := t.Feed(p, messages)
	s.Barrier() // what was said before all had been fed
	s.mu.Lock()
	said := len(s.caughtUp)
	s.mu.Unlock()
	seen := map[string]bool{}
	for len(seen) < messages {
		d := s.Next()
		if t.own(d.Key) {
			seen[d.Key] = true
		}
		s.Finish(d)
	}
	s.extra(s.Within(t.Subject.Quiet))
	s.mu.Lock()
	for _, n := range s.caughtUp[said:] {
		delivered := map[string]bool{}
		for _, d := range s.all[:n] {
			delivered[d.Key] = true
		}
		missing := 0
		for _, k := range keys {
			if !delivered[k] {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("caught_up came while %d of %d messages had not been delivered", missing, messages)
		}
	}
	told := len(s.caughtUp)
	s.mu.Unlock()
	if told == 0 {
		t.Notef("caught_up never came")
		s.leave()
		return
	}
	s.first(t.Feed(p, 1))
	if !s.until(func() bool { return len(s.caughtUp) > told }) {
		t.Errorf("caught_up did not come again within %v of one more delivery: a source that has nothing left again says so again", t.Subject.Wait)
	}
	s.leave()
}

// settlePublishedAt finds points in time that are in other units than
// nanoseconds, or not of the publishing.
func settlePublishedAt(t *Trial) {
	const skew = 10 * time.Minute // of the transport's clock
	p, s := t.reading()
	before := time.Now().Add(-skew)
	ds := s.first(t.Feed(p, 3))
	after := time.Now().Add(skew)
	known := 0
	for _, d := range ds {
		if d.PublishedAt == 0 {
			continue
		}
		known++
		if at := time.Unix(0, d.PublishedAt); at.Before(before) || at.After(after) {
			t.Errorf("published_at of delivery %d is %d, which reads as %v: it is nanoseconds since 1970, and 0 where it is not known", d.ID, d.PublishedAt, at.UTC())
		}
	}
	s.leave()
	if known == 0 {
		t.Exemptf("no delivery says when it was published")
	}
}
