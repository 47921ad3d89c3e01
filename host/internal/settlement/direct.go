// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// acked is the outcome of a nil.
var acked = core.Outcome{Kind: core.OutcomeAck}

// directAcks says of each profile whether the plan of a nil is one ack whose
// answer nobody waits for, and nobody looks at it: it depends on nothing else then
// and is not made for each delivery.
func directAcks(o *LaneOptions, profiles []core.Capabilities) []bool {
	direct := make([]bool, len(profiles))
	if o.Observe != nil || o.Finished != nil || o.Circuit != nil || o.MaxElapsed > 0 {
		return direct
	}
	for i := range profiles {
		c := core.Case{Source: profiles[i], Retry: o.RetryTo, Dead: o.Dead, Journal: o.Journal != nil, Outcome: acked}
		var p core.Plan
		core.Decide(&o.Policy, &c, &p)
		direct[i] = p.N > 0 && p.Notes == 0 && p.Steps[0].Do == core.ActAck && silent(&p, &p.Steps[0])
	}
	return direct
}

// direct reports whether what was said is a nil that ends s with an ack that needs
// no plan.
func (s *settlement) direct(said *Said) bool {
	f := s.f
	return f.gen.direct[f.profile] && said.Outcome == acked && said.Err == nil && len(said.Publishes) == 0 && !said.Snooze &&
		s.row == "" && f.state() == core.VoidLive && (len(s.d.Identity) == 0 || !s.l.floors.any.Load())
}

// ack ends s with the verdict alone, as decide would. s is the worker's.
func (s *settlement) ack() {
	l, f, r := s.l, s.f, ResultAcked
	l.mu.Lock()
	switch v := f.state(); {
	case v == core.VoidReturns:
		r = ResultStale
		l.counts.Failed++
	case v == core.VoidLive && !f.gen.lost:
		f.gen.decide(frame.VerdictRun{First: f.id, Count: 1, Kind: core.VerdictAck})
	}
	l.counts.add(r)
	s.part()
	l.working--
	quiet := l.quiet()
	l.mu.Unlock()
	s.key, s.d, s.bad = nil, Delivery{}, nil
	if quiet {
		l.changed()
	}
}

// silent reports whether a plan ends with a verdict and nothing but L-UNS follows
// its failure.
func silent(p *core.Plan, step *core.Step) bool {
	if !step.End || step.Else == 0 {
		return step.End
	}
	failed := &p.Steps[step.Else]
	return failed.Do == core.ActLog && failed.Code == core.LogUnsettled && failed.End
}
