// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// A property is checked on every plan, or on every walk of every plan. It
// returns what is wrong, or "".
type property struct {
	name   string
	onPlan func(s *situation) string
	onPath func(s *situation, path core.Path) string
}

// properties are checked in one walk over every case; the tests of this file
// name them and report.
var properties = []property{
	{name: "one verdict", onPath: oneVerdict},
	{name: "verdicts within capabilities", onPlan: verdictsWithinCapabilities},
	{name: "no ack before confirmation", onPath: noAckBeforeConfirmation},
	{name: "no copy below the cap where the source counts", onPlan: noCopyWhereTheSourceCounts},
	{name: "nothing is lost in silence", onPath: nothingIsLostInSilence},
	{name: "delays fit the limits", onPath: delaysFitTheLimits},
	{name: "well formed", onPlan: wellFormed},
	{name: "fate before the first step", onPath: fateBeforeTheFirstStep},
	{name: "empty policy publishes nothing", onPlan: emptyPolicyPublishesNothing},
	{name: "pure", onPlan: pure},
	{name: "spent is the cap", onPlan: spentIsTheCap},
	{name: "a budget is a cap", onPlan: aBudgetIsACap},
	{name: "lines are not repeated", onPath: linesAreNotRepeated},
	{name: "rows do not stay", onPath: rowsDoNotStay},
	{name: "nothing is lost by a death", onPath: nothingIsLostByADeath},
	{name: "nothing is doubled in peace", onPlan: nothingIsDoubledInPeace},
}

// stride is the step of the walk over every case. It shares no factor with the
// number of choices of anything, so that all pairs are met. The walk has one
// goroutine, so the race detector, which makes it slow, has nothing to find.
const stride = 401

// step is how many cases the walk goes on by.
func step() int {
	if os.Getenv("LONGSHORE_EVERY_CASE") != "" {
		return 1 // takes minutes
	}
	return stride
}

// complaints are the first complaint about each property, by name. The empty
// name holds what was walked.
var complaints = sync.OnceValue(func() map[string]string {
	found := map[string]string{}
	note := func(name, why string, s *situation, path core.Path) {
		if why == "" || found[name] != "" {
			return
		}
		if path != nil {
			why += "\non the path " + path.String()
		}
		found[name] = why + "\n" + s.String()
	}
	plans, paths := 0, 0
	// Plans repeat: one that was walked under a case that the checks see as the
	// same is not walked again.
	seen := map[walked]bool{}
	for s := range everySituation(step()) {
		plans++
		for _, p := range properties {
			if p.onPlan != nil {
				note(p.name, p.onPlan(s), s, nil)
			}
		}
		k := walkedOf(s)
		if seen[k] {
			continue
		}
		seen[k] = true
		everyPath(&s.plan, func(path core.Path) {
			paths++
			for _, p := range properties {
				if p.onPath != nil {
					note(p.name, p.onPath(s, path), s, path)
				}
			}
		})
	}
	found[""] = fmt.Sprintf("%d capability sets, %d plans, %d of them different, %d paths", len(validSets()), plans, len(seen), paths)
	return found
})

// No plan is longer than there is room for, whatever opens it.
func TestPropertyPlansFit(t *testing.T) {
	longest, n, by := uint8(0), 0, step()
	take := func() bool { n++; return n%by == 0 }
	var plan core.Plan
	for _, s := range validSets() {
		for _, p := range everyPolicy() {
			for kind := range core.OutcomeFailFast + 1 {
				for cause := range core.CauseReplyFailed + 1 {
					for _, after := range []time.Duration{0, 5 * time.Second, 20 * time.Second, time.Hour} {
						o := core.Outcome{Kind: kind, Cause: cause, After: after}
						for c := range everyCase(s, p, o, take) {
							core.Decide(&p, &c, &plan)
							longest = max(longest, plan.N)
						}
					}
				}
			}
		}
	}
	t.Logf("the longest plan has %d of %d steps", longest, core.MaxSteps)
}

// report fails the test with the complaint about the property called name.
func report(t *testing.T, name string) {
	t.Helper()
	found := complaints()
	if !slices.ContainsFunc(properties, func(p property) bool { return p.name == name }) {
		t.Fatalf("there is no property %q", name)
	}
	if why := found[name]; why != "" {
		t.Fatal(why)
	}
	t.Log(found[""])
}

// walked is what the checks of paths read.
type walked struct {
	plan    core.Plan
	source  core.Capabilities
	outcome core.Outcome
	void    core.Void
	retry   core.Route
	journal bool
	capped  bool
	held    time.Duration
}

func walkedOf(s *situation) walked {
	return walked{s.plan, s.c.Source, s.c.Outcome, s.c.Void, s.c.Retry, s.c.Journal, s.capped, s.c.Held}
}

func isVerdict(a core.Action) bool {
	switch a {
	case core.ActAck, core.ActReject, core.ActRelease, core.ActRequeue, core.ActKeep:
		return true
	default:
		return false
	}
}

// cutShort reports whether the walk ended before its plan did: by a stop, or
// because the delivery comes back by itself.
func cutShort(path core.Path) bool {
	for _, d := range path {
		if d.Result == core.ResultCut || d.Result == core.ResultStaleReturns {
			return true
		}
	}
	return false
}

func has(path core.Path, codes ...core.LogCode) bool {
	for _, d := range path {
		for _, c := range codes {
			if d.Step.Code == c {
				return true
			}
		}
	}
	return false
}

// Exactly one of settled, released, requeued, kept on every path; none where
// nobody waits for a verdict. An ack of a cumulative source that failed is none
// where another one follows.
func TestPropertyOneVerdict(t *testing.T) { report(t, "one verdict") }

func oneVerdict(s *situation, path core.Path) string {
	n, repeated := 0, false
	for i := len(path) - 1; i >= 0; i-- {
		d := path[i]
		if !isVerdict(d.Step.Do) || repeated && s.c.Source.Ack == core.AckCumulative && d.Result == core.ResultFailed {
			continue
		}
		n++
		repeated = true
	}
	want := 1
	if s.c.Void == core.VoidGone {
		want = 0
	}
	if n > want || n < want && !cutShort(path) {
		return fmt.Sprintf("%d verdicts, want %d", n, want)
	}
	return ""
}

// A verdict is one that the source can carry out.
func TestPropertyVerdictsWithinCapabilities(t *testing.T) { report(t, "verdicts within capabilities") }

func verdictsWithinCapabilities(s *situation) string {
	src := &s.c.Source
	for _, st := range s.plan.Steps[:s.plan.N] {
		ok := true
		switch st.Do {
		case core.ActAck:
			ok = src.Ack != core.AckNone
		case core.ActReject:
			ok = src.Reject != core.RejectNone
		case core.ActRequeue:
			ok = src.Requeue != core.RequeueNone && (st.Delay == 0 || src.Requeue == core.RequeueDelayed)
		case core.ActStore, core.ActPark, core.ActForget, core.ActForgetLater:
			ok = s.c.Journal
		default:
		}
		if !ok {
			return "the source has no " + st.Text(core.Names{})
		}
	}
	return ""
}

// No ack before every publish or store is confirmed, unless the notes name the
// loss window or a line says that it is lost or refused.
func TestPropertyNoAckBeforeConfirmation(t *testing.T) { report(t, "no ack before confirmation") }

func noAckBeforeConfirmation(s *situation, path core.Path) string {
	owed, safe := false, false
	for i, d := range path {
		ok := d.Result == core.ResultDone
		switch d.Step.Do {
		case core.ActPublish:
			owed, safe = true, safe || ok || d.Result == core.ResultUnknown && !d.Step.Again
		case core.ActStore, core.ActPark:
			owed, safe = true, safe || ok
		case core.ActAck, core.ActReject:
			later := false
			for _, e := range path[i:] {
				later = later || e.Step.Do == core.ActPublishLater
			}
			if (owed || later) && !safe && s.plan.Notes&core.NoteWindow == 0 && !has(path[:i], core.LogLost, core.LogRefused) {
				return "acked before the copy was safe"
			}
		default:
		}
	}
	return ""
}

// No copy below the cap on a source that counts.
func TestPropertyNoCopyBelowTheCapWhereTheSourceCounts(t *testing.T) {
	report(t, "no copy below the cap where the source counts")
}

func noCopyWhereTheSourceCounts(s *situation) string {
	if s.c.Source.Counts != core.CountNative {
		return ""
	}
	for _, st := range s.plan.Steps[:s.plan.N] {
		if st.To == core.TargetRetry {
			return "a copy is made"
		}
	}
	return ""
}

// A retry below the cap that comes to nothing is said.
func TestPropertyNothingIsLostInSilence(t *testing.T) { report(t, "nothing is lost in silence") }

func nothingIsLostInSilence(s *situation, path core.Path) string {
	o := s.c.Outcome
	retry := o.Kind == core.OutcomeRetry || o.Kind == core.OutcomeRetryAfter
	if !retry || s.capped || cutShort(path) {
		return ""
	}
	end := core.Fate(path, len(path), core.PartyNobody, &s.c)
	left := end == core.EndingLost // a receipt that says neither counts as sent
	for _, d := range path {
		// Left to a disconnect or a resume that nobody asked for.
		left = left || d.Step.Do == core.ActRelease && s.c.Source.Unsettled != core.UnsettledOnTimeout && end&core.EndingDone == 0 &&
			!has(path, core.LogCopy)
	}
	said := has(path, core.LogUnsettled, core.LogDelay, core.LogLost, core.LogRefused, core.LogNack, core.LogDouble, core.LogCopy, core.LogDecode)
	if left && !said {
		return fmt.Sprintf("it ends %s and no line says so", end)
	}
	return ""
}

// Holds and delays fit the limits.
func TestPropertyDelaysFitTheLimits(t *testing.T) { report(t, "delays fit the limits") }

func delaysFitTheLimits(s *situation, path core.Path) string {
	src := &s.c.Source
	held := s.c.Held
	for _, d := range path {
		st := d.Step
		switch {
		case st.Delay < 0:
			return "a delay is negative"
		case st.Do == core.ActHold:
			held += st.Delay
			if st.Delay == 0 {
				return "a hold of nothing"
			}
			if src.MaxHold > 0 && !src.Extend && held >= src.MaxHold && s.c.Void != core.VoidGone {
				return fmt.Sprintf("held for %s", held)
			}
		case st.Do == core.ActRequeue && src.MaxDelay > 0 && st.Delay >= src.MaxDelay:
			return "requeued beyond MaxDelay"
		case st.Do == core.ActPublish && st.Delay > 0 && st.Delay >= s.c.Retry.Caps.MaxDelay:
			return "published beyond the destination's MaxDelay"
		case st.Do == core.ActPublishLater && st.Delay == 0:
			return "a wait of nothing"
		}
	}
	return ""
}

// Jumps go forward, every step can be reached, and a branch that ends says so.
func TestPropertyPlansAreWellFormed(t *testing.T) { report(t, "well formed") }

func wellFormed(s *situation) string {
	p := &s.plan
	reached := [core.MaxSteps]bool{0: true}
	for i := range p.N {
		st := &p.Steps[i]
		if st.Do == core.ActNone {
			return "a step does nothing"
		}
		if !reached[i] {
			return fmt.Sprintf("step %d cannot be reached", i)
		}
		if st.Else != 0 {
			if st.Else <= i || st.Else >= p.N {
				return fmt.Sprintf("step %d jumps to %d of %d", i, st.Else, p.N)
			}
			reached[st.Else] = true
		}
		switch {
		case st.End:
		case i+1 == p.N:
			return "the last step does not say that it is"
		default:
			reached[i+1] = true
		}
	}
	for _, st := range p.Steps[p.N:] {
		if st != (core.Step{}) {
			return "there is something behind the plan"
		}
	}
	return ""
}

// An empty policy and any outcome but retry after publishes nothing.
func TestPropertyEmptyPolicyPublishesNothing(t *testing.T) {
	report(t, "empty policy publishes nothing")
}

func emptyPolicyPublishesNothing(s *situation) string {
	if !s.policy.Empty() || s.c.Outcome.Kind == core.OutcomeRetryAfter {
		return ""
	}
	for _, st := range s.plan.Steps[:s.plan.N] {
		if st.To != core.TargetNone {
			return st.Text(core.Names{})
		}
	}
	return ""
}

// A plan depends on nothing but its arguments, and changes neither.
func TestPropertyPlansArePure(t *testing.T) { report(t, "pure") }

func pure(s *situation) string {
	var again core.Plan
	p, c := s.policy, s.c
	for i := range again.Steps {
		again.Steps[i] = core.Step{Do: core.ActStop, Else: 200, Count: 99}
	}
	again.N, again.Notes = 77, 0xff
	core.Decide(&p, &c, &again)
	switch {
	case again != s.plan:
		return "decided twice it is " + again.String()
	case p != s.policy || c != s.c:
		return "the arguments changed"
	}
	return ""
}
