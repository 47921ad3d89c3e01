// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"slices"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func besideCases() []Case {
	return []Case{
		{
			ID: "settle/beside", Section: sectionStreams,
			Claim:   "Two subscriptions of one endpoint are apart: each has its own messages, ids and window, and one without room, or ended, holds up no other.",
			Applies: reads, Needs: needs(feeds, secondName), Run: settleBeside,
		},
		{
			ID: "settle/burst", Section: sectionDeliveries,
			Claim:   "Of thousands of messages that come at once each is delivered, and delivered once.",
			Applies: reads, Needs: feeds, Run: settleBurst,
		},
	}
}

// secondName says that the subject has no second name to subscribe to.
func secondName(a *About) string {
	name := func(word string) string { return Place{}.filler(word)(a.Subject.Subscription) }
	if name("1") == name("2") {
		return "a subscription whose name has " + CaseWord + ", so that there can be two"
	}
	return ""
}

// beside is a second subscription of a case.
type beside struct {
	t                 *Trial
	name, destination string
}

func (t *Trial) beside() *beside {
	fill := Place{Dir: t.Dir}.filler(t.Word + "-beside")
	return &beside{t: t, name: fill(t.Subject.Subscription), destination: fill(t.Subject.Destination)}
}

func (b *beside) registration() *transportpb.Registration {
	return &transportpb.Registration{Id: 1, Name: b.name, Options: b.t.Options}
}

// inspect asks about both. The case is not run where the transport cannot have
// the second one, or where both have one intake.
func (b *beside) inspect(p *Process) {
	u := b.t.Usage()
	u.Registrations = append(u.Registrations, b.registration())
	if len(u.GetDestinations()) > 0 {
		u.Destinations = append(u.Destinations, &transportpb.Target{
			Name: b.destination, Purpose: transportpb.Purpose_PURPOSE_APPLICATION, Options: b.t.Send,
		})
	}
	in := p.Inspect(u)
	for _, r := range in.GetRegistrations() {
		if f := refusal(r.GetFindings()); f != nil {
			b.t.Exemptf("a second subscription of the endpoint is refused")
		}
		if len(r.GetShares()) > 0 {
			b.t.Exemptf("two subscriptions share what they read")
		}
	}
	if f := refusal(in.GetFindings()); f != nil {
		b.t.Exemptf("two subscriptions are refused: %v", f)
	}
	if b.t.Subject.Inject != nil {
		return
	}
	for i, d := range in.GetDestinations() {
		if !slices.Equal(d.GetReturnsTo(), []uint32{uint32(i)}) {
			b.t.Skipf("what is published to %s does not return to one of two subscriptions alone", u.GetDestinations()[i].GetName())
		}
	}
}

// feed puts n messages where the second subscription reads.
func (b *beside) feed(p *Process, n int) []string {
	t := b.t
	if t.Subject.Inject == nil {
		ms := t.Messages(b.destination, n, 0)
		t.Put(p, ms)
		return Keys(ms)
	}
	ms := t.Messages(b.name, n, 0)
	ctx, cancel := t.limited()
	defer cancel()
	if err := t.Subject.Inject(ctx, t.place(p, b.name), ms); err != nil {
		t.Skipf("the injector cannot reach a second subscription, %s: %v", b.name, err)
	}
	return Keys(ms)
}

// settleBeside gives the first subscription no room while the second one works,
// acks the second one's deliveries, whose ids are those of the first one's too,
// and ends it. The first one is as if nothing had been.
func settleBeside(t *Trial) {
	const n = 6
	b := t.beside()
	p := t.Configured()
	b.inspect(p)
	p.Connect()
	first := p.Open(t.registration())
	other, err := p.open(b.registration())
	if err != nil {
		t.Fatalf("a second subscription, which Inspect takes, cannot be opened beside the first one: %v", err)
	}
	kept := t.About.All(returnsAtAll)
	other.Credit(windowMessages, windowBytes)
	if kept {
		first.Credit(0, windowBytes)
	} else {
		first.Credit(windowMessages, windowBytes)
	}
	mine := t.Feed(p, n)
	theirs := b.feed(p, n)
	ds := other.first(theirs)
	first.Credit(windowMessages, windowBytes)
	open := first.first(mine)
	sortByID(ds)
	for _, d := range ds {
		other.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	}
	for _, s := range []*Sub{first, other} {
		keys := mine
		if s == first {
			keys = theirs
		}
		s.mustNot(s.allOf(), keys, "they belong to the other subscription")
	}
	other.End()
	more := first.feedTake(n) // the first one goes on
	first.letGo(more...)
	if kept && soon(t.About) && !t.Failed() {
		first.End()
		p.Close()
		_, s := t.reading()
		s.again(open, nil, "")
		s.leave()
		return
	}
	for _, d := range open {
		first.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	}
	first.leave()
}

// allOf are all deliveries that have come.
func (s *Sub) allOf() []*Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// settleBurst settles as deliveries come.
func settleBurst(t *Trial) {
	const messages = 2000
	p := t.Connected()
	s := p.Subscribe()
	wait := t.inject(p, t.Messages(t.feedName(), messages, 0))
	seen := map[string]int{}
	for len(seen) < messages && s.more(t.Subject.Wait) {
		ds := s.remaining()
		for _, d := range ds {
			if t.own(d.Key) {
				seen[d.Key]++
			}
		}
		sortByID(ds) // for cumulative acks
		s.Finish(ds...)
	}
	keys := wait()
	var lost []string
	doubles := 0
	for _, k := range keys {
		if seen[k] == 0 {
			lost = append(lost, k)
		}
		doubles += max(seen[k]-1, 0)
	}
	if len(lost) > 0 {
		t.Errorf("%d of %d messages did not come within %v: %s%s", len(lost), len(keys), t.Subject.Wait, some(lost), s.state())
	}
	if doubles > 0 {
		t.doubled("%d deliveries too many came of %d messages, each of which was fed once", doubles, len(keys))
	}
	t.Notef("fed %d = settled %d + outstanding %d; %d deliveries were duplicates", len(keys), len(seen), len(lost), doubles)
	s.Barrier()
	s.End()
	p.Close()
}
