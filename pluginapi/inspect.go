// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// inspected is what the last Inspect promised: Started and Publish are checked
// against it.
type inspected struct {
	profiles map[uint32][]core.Capabilities // by registration
	targets  map[string]core.Publishing     // by name
}

// Inspect asks what the registrations and destinations can do. Those whose
// options do not fit their schema are answered here; the transport sees the
// rest, so that one answer holds all there is to say.
func (s *server) Inspect(ctx context.Context, r *transportpb.InspectRequest) (*transportpb.InspectResponse, error) {
	if err := s.take(ctx, "inspect"); err != nil {
		return nil, err
	}
	defer s.give()
	s.mu.Lock()
	d, endpoint, closed := s.described, s.endpoint, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, closedFault("inspect")
	case endpoint == nil:
		return nil, misuse("inspect", "configure comes before it")
	}
	q := newInquiry(d, r)
	var in Inspection
	if f := contain(s.log, "Inspect", func() { in = endpoint.Inspect(q.usage) }); f != nil {
		return nil, f
	}
	c := inspectionCheck{where: "Inspect of transport " + d.spec.Name, spec: &d.spec}
	if f := c.check(q.usage, in); f != nil {
		return nil, f
	}
	answer, promised := q.answer(in)
	s.mu.Lock()
	s.inspected = promised
	s.mu.Unlock()
	return answer, nil
}

// inquiry is one Inspect: what the transport is asked, and how its answer maps
// back onto what the host asked.
type inquiry struct {
	usage     Usage
	ids       []uint32 // host's id of each registration in usage
	targets   []int    // host's index of each destination in usage
	request   *transportpb.InspectRequest
	refusedIn map[int][]Finding // registrations whose options are wrong, by the host's index
	refusedTo map[int][]Finding // destinations likewise
}

func newInquiry(d *description, r *transportpb.InspectRequest) *inquiry {
	q := &inquiry{request: r, refusedIn: map[int][]Finding{}, refusedTo: map[int][]Finding{}}
	mine := make(map[uint32]uint32) // host's id to index in usage
	for i, p := range r.GetRegistrations() {
		reg, wrong := d.registration(p)
		if len(wrong) > 0 {
			q.refusedIn[i] = findings(wrong)
			continue
		}
		reg.ID = uint32(len(q.ids))
		mine[p.GetId()] = reg.ID
		q.ids = append(q.ids, p.GetId())
		q.usage.Registrations = append(q.usage.Registrations, reg)
	}
	for i, p := range r.GetDestinations() {
		options, wrong := d.spec.Publish.options(append([]byte(nil), p.GetOptions()...))
		if len(wrong) > 0 {
			q.refusedTo[i] = findings(wrong)
			continue
		}
		t := Target{Name: p.GetName(), Purpose: purpose(p.GetPurpose()), Options: options}
		for _, id := range p.GetFor() {
			if m, ok := mine[id]; ok {
				t.For = append(t.For, m)
			}
		}
		q.targets = append(q.targets, i)
		q.usage.Destinations = append(q.usage.Destinations, t)
	}
	return q
}

// registration reads a registration, with what is wrong with its options.
func (d *description) registration(p *transportpb.Registration) (Registration, []Diagnostic) {
	options, wrong := d.spec.Subscription.options(append([]byte(nil), p.GetOptions()...))
	return Registration{
		ID:         p.GetId(),
		Name:       p.GetName(),
		Options:    options,
		Attempts:   p.GetAttempts(),
		DeadLetter: p.GetDeadLetter(),
		RetryTo:    p.GetRetryTo(),
		Backoff:    time.Duration(p.GetBackoff()),
		Elapsed:    time.Duration(p.GetElapsed()),
		Batch:      p.GetBatch(),
		Decoded:    p.GetDecoded(),
	}, wrong
}

// purpose returns a known purpose, else none.
func purpose(p transportpb.Purpose) Purpose {
	if p < 0 || p > transportpb.Purpose(PurposeReply) {
		return PurposeUnspecified
	}
	return Purpose(p)
}

// findings turns what is wrong with options into refusals.
func findings(wrong []Diagnostic) []Finding {
	fs := make([]Finding, len(wrong))
	for i, d := range wrong {
		fs[i] = Finding{Option: d.Path, Message: d.Message, Fix: d.Fix}
	}
	return fs
}

// answer maps an Inspection back onto the host's ids.
func (q *inquiry) answer(in Inspection) (*transportpb.InspectResponse, *inspected) {
	promised := &inspected{
		profiles: make(map[uint32][]core.Capabilities, len(q.ids)),
		targets:  make(map[string]core.Publishing, len(q.targets)),
	}
	m := &transportpb.InspectResponse{
		Registrations: make([]*transportpb.RegistrationReport, len(q.request.GetRegistrations())),
		Destinations:  make([]*transportpb.TargetReport, len(q.request.GetDestinations())),
		Findings:      findingMessages(in.Findings),
	}
	for i, fs := range q.refusedIn {
		m.Registrations[i] = &transportpb.RegistrationReport{Findings: findingMessages(fs)}
	}
	for i, fs := range q.refusedTo {
		m.Destinations[i] = &transportpb.TargetReport{Findings: findingMessages(fs)}
	}
	next := 0
	for i := range m.Registrations {
		if m.Registrations[i] != nil {
			continue
		}
		r := in.Registrations[next]
		promised.profiles[q.ids[next]] = r.Profiles
		m.Registrations[i] = &transportpb.RegistrationReport{
			Profiles: convert.FromProfiles(r.Profiles),
			Shares:   q.hosts(r.Shares),
			Findings: findingMessages(r.Findings),
		}
		next++
	}
	for k, t := range in.Destinations {
		i := q.targets[k]
		name := q.usage.Destinations[k].Name
		if had, ok := promised.targets[name]; !ok || publishesMore(t.Publishing, had) != "" {
			promised.targets[name] = t.Publishing
		}
		m.Destinations[i] = &transportpb.TargetReport{
			Publishing: convert.FromPublishing(t.Publishing),
			ReturnsTo:  q.hosts(t.ReturnsTo),
			Exactly:    q.hosts(t.Exactly),
			Findings:   findingMessages(t.Findings),
		}
	}
	return m, promised
}

// hosts maps ids of usage onto the host's.
func (q *inquiry) hosts(ids []uint32) []uint32 {
	var out []uint32
	for _, id := range ids {
		out = append(out, q.ids[id])
	}
	return out
}

func findingMessages(fs []Finding) []*transportpb.Finding {
	var out []*transportpb.Finding
	for _, f := range fs {
		out = append(out, &transportpb.Finding{
			Warning: f.Warning, Option: convert.Text(cut(f.Option, maxReportPlace)),
			Message: convert.Text(cut(f.Message, maxFaultText)), Fix: convert.Text(cut(f.Fix, maxFaultText)),
		})
	}
	return out
}

// inspectionCheck finds what an Inspection may not say.
type inspectionCheck struct {
	where string
	spec  *Spec
}

func (c *inspectionCheck) check(u Usage, in Inspection) *core.Fault {
	if len(in.Registrations) != len(u.Registrations) {
		return breach(c.where, "registrations",
			fmt.Sprintf("has %d entries for %d", len(in.Registrations), len(u.Registrations)), "answer index by index")
	}
	if len(in.Destinations) != len(u.Destinations) {
		return breach(c.where, "destinations",
			fmt.Sprintf("has %d entries for %d", len(in.Destinations), len(u.Destinations)), "answer index by index")
	}
	if f := c.findings("findings", in.Findings); f != nil {
		return f
	}
	for i := range in.Registrations {
		if f := c.registration(fmt.Sprintf("registrations[%d]", i), len(u.Registrations), &in.Registrations[i]); f != nil {
			return f
		}
	}
	for i := range in.Destinations {
		if f := c.target(fmt.Sprintf("destinations[%d]", i), len(u.Registrations), &in.Destinations[i]); f != nil {
			return f
		}
	}
	return nil
}

func (c *inspectionCheck) registration(path string, regs int, r *RegistrationReport) *core.Fault {
	if len(r.Profiles) == 0 && !refused(r.Findings) {
		return breach(c.where, path+".profiles", "is empty", "name at least one capability set, or refuse with a finding")
	}
	if f := crowd(c.where, path+".profiles", len(r.Profiles)); f != nil {
		return f
	}
	for k, p := range r.Profiles {
		if f := profileBreach(c.where, fmt.Sprintf("%s.profiles[%d]", path, k), p, c.spec.Ceilings, false, "ceiling"); f != nil {
			return f
		}
	}
	if f := c.ids(path+".shares", regs, r.Shares); f != nil {
		return f
	}
	return c.findings(path+".findings", r.Findings)
}

// profileBreach checks one capability set by itself and against what was
// announced before.
func profileBreach(where, path string, p core.Capabilities, tops []core.Capabilities, named bool, top string) *core.Fault {
	if f := contradiction(where, path, p); f != nil {
		return f
	}
	field, wide := widerThanAll(p, tops, named)
	if !wide {
		return nil
	}
	if field == "" {
		return breach(where, path, "lies within no "+top+": there is none", "announce one")
	}
	return breach(where, path+"."+field, "is wider than every "+top, "announce it there, or narrow it here")
}

func (c *inspectionCheck) target(path string, regs int, t *TargetReport) *core.Fault {
	if field, what := badPublishing(t.Publishing); field != "" {
		return breach(c.where, path+".publishing."+field, what, "give 0 where there is no limit")
	}
	if field := publishesMore(t.Publishing, c.spec.Publishing); field != "" && !refused(t.Findings) {
		return breach(c.where, path+".publishing."+field, "is wider than what Describe said",
			"announce it in Spec.Publishing, or narrow it here")
	}
	if f := c.ids(path+".returns_to", regs, t.ReturnsTo); f != nil {
		return f
	}
	if f := c.ids(path+".exactly", regs, t.Exactly); f != nil {
		return f
	}
	for _, id := range t.Exactly {
		if !slices.Contains(t.ReturnsTo, id) {
			return breach(c.where, path+".exactly", fmt.Sprintf("names registration %d, returns_to does not", id),
				"exactly is a part of returns_to")
		}
	}
	return c.findings(path+".findings", t.Findings)
}

func (c *inspectionCheck) ids(path string, regs int, ids []uint32) *core.Fault {
	for i, id := range ids {
		if int(id) >= regs {
			return breach(c.where, fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("is %d: there are %d registrations", id, regs),
				"use the ids that Usage gives")
		}
	}
	return nil
}

func (c *inspectionCheck) findings(path string, fs []Finding) *core.Fault {
	for i, f := range fs {
		if f.Message == "" {
			return breach(c.where, fmt.Sprintf("%s[%d].message", path, i), "is empty", "say what is wrong")
		}
	}
	return nil
}

// refused reports whether one of the findings refuses.
func refused(fs []Finding) bool {
	for _, f := range fs {
		if !f.Warning {
			return true
		}
	}
	return false
}
