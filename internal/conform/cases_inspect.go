// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func inspectCases() []Case {
	return []Case{
		{
			ID: "inspect/index", Section: sectionCalls,
			Claim: "Inspect has one report for each registration and destination, in their order, and answers alike however often it is asked.",
			Run:   inspectIndex,
		},
		{
			ID: "inspect/ceilings", Section: sectionCapabilities,
			Claim: "What Inspect says does not contradict itself and lies within what Describe says that any can do.",
			Run:   inspectCeilings,
		},
		{
			ID: "inspect/started-narrows", Section: sectionCapabilities,
			Claim:   "The capability sets of started are as Inspect said, or narrower.",
			Applies: reads, Run: inspectStarted,
		},
	}
}

// inspectIndex asks about two names each in both orders: the answers have to be
// the same but for their order.
func inspectIndex(t *Trial) {
	const other = "-other"
	p := t.Configured()
	var registrations []*transportpb.Registration
	var targets []*transportpb.Target
	for i, name := range []string{t.Subscription(), t.Subscription() + other} {
		registrations = append(registrations, &transportpb.Registration{Id: uint32(i), Name: name, Options: t.Options})
	}
	for i, name := range []string{t.Destination(), t.Destination() + other, t.Subscription() + other} {
		purpose := transportpb.Purpose_PURPOSE_APPLICATION
		if i == 2 {
			purpose = transportpb.Purpose_PURPOSE_RETRY
		}
		targets = append(targets, &transportpb.Target{Name: name, Purpose: purpose, Options: t.Send})
	}
	targets[2].For = []uint32{1}
	there := &transportpb.InspectRequest{Registrations: registrations, Destinations: targets}
	back := &transportpb.InspectRequest{Registrations: slices.Clone(registrations), Destinations: slices.Clone(targets)}
	last := uint32(len(registrations) - 1)
	for i, r := range registrations {
		back.Registrations[int(last)-i] = &transportpb.Registration{Id: last - uint32(i), Name: r.GetName(), Options: r.GetOptions()}
	}
	slices.Reverse(back.Destinations)
	for i, d := range back.GetDestinations() {
		back.Destinations[i] = proto.CloneOf(d)
		for j, id := range d.GetFor() {
			back.Destinations[i].For[j] = last - id
		}
	}
	first, again, mirrored := p.Inspect(there), p.Inspect(there), p.Inspect(back)
	if !proto.Equal(first, again) {
		t.Errorf("Inspect answers something else when it is asked the same again: %s", difference(first, again))
	}
	for i, r := range first.GetRegistrations() {
		m := proto.CloneOf(mirrored.GetRegistrations()[int(last)-i])
		if m.Shares = mirror(m.GetShares(), last); !refusing(r, m) && !sameReport(r, m) {
			t.Errorf("Inspect answers otherwise about the subscription %s where it stands elsewhere in the question: %s",
				registrations[i].GetName(), difference(r, m))
		}
		t.ids(fmt.Sprintf("shares of registration %d", i), r.GetShares(), last)
	}
	for i, r := range first.GetDestinations() {
		m := proto.CloneOf(mirrored.GetDestinations()[len(targets)-1-i])
		m.ReturnsTo, m.Exactly = mirror(m.GetReturnsTo(), last), mirror(m.GetExactly(), last)
		if !refusing(r, m) && !sameTarget(r, m) {
			t.Errorf("Inspect answers otherwise about the destination %s where it stands elsewhere in the question: %s",
				targets[i].GetName(), difference(r, m))
		}
		t.ids(fmt.Sprintf("returns_to of destination %d", i), r.GetReturnsTo(), last)
		for _, id := range r.GetExactly() {
			if !slices.Contains(r.GetReturnsTo(), id) {
				t.Errorf("exactly of destination %d names registration %d, which is not in its returns_to", i, id)
			}
		}
	}
	p.Unleash()
}

// refusing reports whether one of two answers refuses: a transport that takes one
// name only may refuse the one that stands later.
func refusing(a, b interface {
	GetFindings() []*transportpb.Finding
}) bool {
	return refusal(a.GetFindings()) != nil || refusal(b.GetFindings()) != nil
}

// ids checks that ids are those of registrations.
func (t *Trial) ids(of string, ids []uint32, last uint32) {
	for _, id := range ids {
		if id > last {
			t.Errorf("%s names registration %d, and the last one is %d", of, id, last)
		}
	}
}

// mirror returns the ids of registrations that stand in reverse.
func mirror(ids []uint32, last uint32) []uint32 {
	out := make([]uint32, 0, len(ids))
	for _, id := range ids {
		out = append(out, last-min(id, last))
	}
	slices.Sort(out)
	return out
}

// sameReport compares reports; ids have no order.
func sameReport(a, b *transportpb.RegistrationReport) bool {
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	slices.Sort(a.GetShares())
	slices.Sort(b.GetShares())
	return proto.Equal(a, b)
}

func sameTarget(a, b *transportpb.TargetReport) bool {
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	for _, r := range []*transportpb.TargetReport{a, b} {
		slices.Sort(r.GetReturnsTo())
		slices.Sort(r.GetExactly())
	}
	return proto.Equal(a, b)
}

// inspectCeilings compares Inspect with Describe.
func inspectCeilings(t *Trial) {
	p := t.Configured()
	in := p.Inspect(t.Usage())
	ceilings := convert.ToProfiles(p.Description().GetCeilings())
	for i := range ceilings {
		ceilings[i].Address = anyAddress(ceilings[i].Address)
	}
	for _, r := range in.GetRegistrations() {
		if len(r.GetProfiles()) == 0 && refusal(r.GetFindings()) == nil {
			t.Errorf("Inspect answers no profile for the subscription and no finding that refuses it")
		}
		for i, c := range convert.ToProfiles(r.GetProfiles()) {
			if err := c.Valid(); err != nil {
				t.Errorf("profile %d of the subscription contradicts itself: %v", i, err)
			}
			c.Address = anyAddress(c.Address)
			if field := beyondAll(c, ceilings); field != "" {
				t.Errorf("profile %d of the subscription is wider than every ceiling of Describe: %s (%v)", i, field, c)
			}
		}
	}
	for _, r := range in.GetDestinations() {
		if refusal(r.GetFindings()) != nil {
			continue
		}
		if wrong := badPublishing(r.GetPublishing()); wrong != "" {
			t.Errorf("what Inspect says of the destination: %s", wrong)
		}
		if field := widerPublishing(convert.ToPublishing(r.GetPublishing()), convert.ToPublishing(p.Description().GetPublishing())); field != "" {
			t.Errorf("the destination can do more than Describe says that any can: %s", field)
		}
	}
	p.Unleash()
}

// anyAddress stands for every address: a ceiling says only that there is one.
func anyAddress(address string) string {
	if address != "" {
		return "any"
	}
	return ""
}

// beyondAll names a field in which a set is wider than each of others, "" where
// it lies within one.
func beyondAll(c core.Capabilities, others []core.Capabilities) string {
	field := "there is none"
	for _, o := range others {
		if field = c.Wider(o); field == "" {
			return ""
		}
	}
	return field
}

// widerPublishing names the first field in which a destination can do more than
// said, "" where none is.
func widerPublishing(p, said core.Publishing) string {
	over := func(limit, than int64) bool { return than != 0 && (limit == 0 || limit > than) }
	switch {
	case p.Confirms > said.Confirms:
		return "confirms"
	case p.Retains > said.Retains:
		return "retains"
	case p.MaxDelay > said.MaxDelay: // 0 is no delay at all
		return "max_delay"
	case p.Dedups && !said.Dedups:
		return "dedups"
	case p.Headers != said.Headers && said.Headers == core.HeadersNone:
		return "headers"
	case p.Repeats && !said.Repeats:
		return "repeats"
	case over(p.MaxBytes, said.MaxBytes):
		return "max_bytes"
	case over(int64(p.MaxHeaders), int64(said.MaxHeaders)):
		return "max_headers"
	}
	return ""
}

// inspectStarted compares started with Inspect.
func inspectStarted(t *Trial) {
	p := t.Configured()
	in := p.Inspect(t.Usage())
	p.Connect()
	said := convert.ToProfiles(in.GetRegistrations()[0].GetProfiles())
	s := p.Open(t.registration())
	for i, c := range s.Profiles() {
		if err := c.Valid(); err != nil {
			t.Errorf("profile %d of started contradicts itself: %v", i, err)
		}
		if field := beyondAll(c, said); field != "" {
			t.Errorf("profile %d of started is wider than what Inspect said: %s (%v)", i, field, c)
		}
	}
	s.End()
	p.Close()
}
