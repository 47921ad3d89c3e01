// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

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
	{name: "lines are not repeated", onPath: linesAreNotRepeated},
	{name: "rows do not stay", onPath: rowsDoNotStay},
	{name: "nothing is lost by a death", onPath: nothingIsLostByADeath},
	{name: "nothing is doubled in peace", onPlan: nothingIsDoubledInPeace},
}

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

// What the walk does not vary is drawn: limits, delays, counts, causes, routes.
func TestPropertiesOfDrawnCases(t *testing.T) {
	sets := validSets()
	rapid.Check(t, func(t *rapid.T) {
		delay := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Map(rapid.Int64Range(1, int64(2*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }))
		caps := rapid.SampledFrom(sets).Draw(t, "capabilities")
		caps.Durable = true // what the walk's checks take for granted
		if caps.MaxDelay > 0 {
			caps.MaxDelay = delay.Draw(t, "MaxDelay") + 1
		}
		if caps.MaxHold > 0 {
			caps.MaxHold = delay.Draw(t, "MaxHold") + 1
		}
		route := rapid.Custom(func(t *rapid.T) core.Route {
			r := core.Route{
				State:    core.RouteState(rapid.IntRange(0, 2).Draw(t, "state")),
				Restarts: true,
				Own:      rapid.Bool().Draw(t, "own"),
				Caps: core.Publishing{
					Confirms: core.ConfirmStored,
					Retains:  core.Retention(rapid.IntRange(1, 2).Draw(t, "retains")),
					MaxDelay: delay.Draw(t, "destination delays"),
					Dedups:   rapid.Bool().Draw(t, "dedups"),
				},
			}
			return r
		})
		s := &situation{
			policy: core.Policy{
				MaxAttempts: rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32()).Draw(t, "cap"),
				DeadLetter:  rapid.Bool().Draw(t, "dead letter"),
				Backoff:     rapid.Bool().Draw(t, "backoff"),
			},
			c: core.Case{
				Source: caps, Retry: route.Draw(t, "retry"), Dead: deadRoute,
				Outcome: core.Outcome{
					Kind:  core.OutcomeKind(rapid.IntRange(0, int(core.OutcomeFailFast)).Draw(t, "kind")),
					Cause: core.Cause(rapid.IntRange(0, int(core.CauseReplyFailed)).Draw(t, "cause")),
					After: delay.Draw(t, "after"),
				},
				Floor:   delay.Draw(t, "floor"),
				Journal: rapid.Bool().Draw(t, "journal"),
				Full:    rapid.Bool().Draw(t, "full"),
			},
		}
		if caps.MaxHold > 0 {
			s.c.Held = time.Duration(rapid.Int64Range(0, int64(caps.MaxHold)-1).Draw(t, "held"))
		}
		if rapid.Bool().Draw(t, "gone") {
			s.c.Void = core.VoidGone
		}
		s.c.Attempt.Copies = rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(t, "copies")
		if caps.Counts == core.CountNative {
			s.c.Attempt.Native = rapid.Uint32().Draw(t, "native")
		}
		core.Decide(&s.policy, &s.c, &s.plan)
		s.capped = s.plan.Notes&core.NoteCap != 0
		for _, p := range properties {
			if p.onPlan != nil {
				if why := p.onPlan(s); why != "" {
					t.Fatalf("%s: %s\n%s", p.name, why, s)
				}
				continue
			}
			everyPath(&s.plan, func(path core.Path) {
				if why := p.onPath(s, path); why != "" {
					t.Fatalf("%s: %s\non the path %s\n%s", p.name, why, path, s)
				}
			})
		}
	})
}

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
// nobody waits for a verdict.
func TestPropertyOneVerdict(t *testing.T) { report(t, "one verdict") }

func oneVerdict(s *situation, path core.Path) string {
	n := 0
	for _, d := range path {
		if isVerdict(d.Step.Do) {
			n++
		}
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

// Fate before the first step is what Unsettled says.
func TestPropertyFateBeforeTheFirstStep(t *testing.T) { report(t, "fate before the first step") }

func fateBeforeTheFirstStep(s *situation, path core.Path) string {
	if s.c.Void != core.VoidLive {
		return ""
	}
	o := s.c.Outcome.Kind
	more := o != core.OutcomeAck && o != core.OutcomeDrop
	if has(path, core.LogCapReject, core.LogRefused) || o == core.OutcomeDeadLetter && !s.policy.DeadLetter && !s.capped {
		more = false
	}
	if s.plan.Notes&core.NoteOverCap != 0 {
		more = s.policy.DeadLetter
	}
	want := core.EndingKept
	switch lost := s.c.Source.Unsettled == core.UnsettledLost; {
	case lost && more:
		want = core.EndingLost
	case lost:
		want = core.EndingDone
	case !more:
		want = core.EndingDoubled
	}
	for _, dies := range []core.Party{core.PartyHost, core.PartySourcePlugin, core.PartySourceBroker} {
		if got := core.Fate(path, 0, dies, &s.c); got != want {
			return fmt.Sprintf("fate if %s dies is %s, want %s", dies, got, want)
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

// L-UNS never stands after L-DEC nor at the cap, and nothing is said twice.
func TestPropertyLinesAreNotRepeated(t *testing.T) { report(t, "lines are not repeated") }

func linesAreNotRepeated(s *situation, path core.Path) string {
	seen := map[core.LogCode]int{}
	for _, d := range path {
		if d.Step.Do == core.ActLog {
			seen[d.Step.Code]++
		}
	}
	for code, n := range seen {
		if n > 1 {
			return fmt.Sprintf("%s is said %d times", code, n)
		}
	}
	if seen[core.LogUnsettled] > 0 && (seen[core.LogDecode] > 0 || s.capped) {
		return "L-UNS is not for a delivery that was undecodable or at the cap"
	}
	return ""
}

// A row does not stay behind: it is removed, becomes a parked one, goes with
// the copy's own delivery, or waits for the next run.
func TestPropertyRowsDoNotStay(t *testing.T) { report(t, "rows do not stay") }

func rowsDoNotStay(s *situation, path core.Path) string {
	row, out := false, false
	for _, d := range path {
		ok := d.Result == core.ResultDone
		switch d.Step.Do {
		case core.ActStore:
			row = ok
		case core.ActPublish, core.ActPublishLater:
			out = out || ok || d.Result == core.ResultUnknown && !d.Step.Again
		case core.ActForget:
			if !row {
				return "a row is removed that was not stored"
			}
			row = false
		case core.ActPark:
			row = false // or it waits for the next run
		case core.ActForgetLater:
			if !out {
				return "a row waits for a copy that is not out"
			}
			row = false
		default:
		}
	}
	if len(path) == 0 {
		return ""
	}
	last := path[len(path)-1]
	if row && last.Result != core.ResultCut && !(last.Step.Code == core.LogDouble && s.retainsProcess(path)) {
		return "the row stays"
	}
	return ""
}

// stored reports whether the journal took the copy.
func stored(path core.Path) bool {
	for _, d := range path {
		if d.Step.Do == core.ActStore && d.Result == core.ResultDone {
			return true
		}
	}
	return false
}

// retainsProcess reports whether the copy goes where only this process reads.
func (s *situation) retainsProcess(path core.Path) bool {
	for _, d := range path {
		if d.Step.To == core.TargetRetry {
			return s.c.Retry.Caps.Retains == core.RetainProcess
		}
	}
	return false
}

// Where the source brings back what is unsettled, whoever dies after whatever
// step loses nothing, unless the plan says so by its note or a line, or the
// destination promises too little.
func TestPropertyNothingIsLostByADeath(t *testing.T) { report(t, "nothing is lost by a death") }

func nothingIsLostByADeath(s *situation, path core.Path) string {
	parties := []core.Party{core.PartyNobody, core.PartyHost, core.PartySourcePlugin, core.PartySourceBroker, core.PartyTargetPlugin, core.PartyTargetBroker}
	src := &s.c.Source
	weak := s.c.Retry.Caps.Retains == core.RetainProcess && !stored(path)
	if src.Unsettled == core.UnsettledLost || weak || s.c.Void == core.VoidGone || s.plan.Notes&core.NoteWindow != 0 {
		return ""
	}
	// What the destination's end leads to stands in the plan.
	lastRung := slices.ContainsFunc(s.plan.Steps[:], func(st core.Step) bool { return st.Code == core.LogLost })
	for done := range len(path) + 1 {
		said := has(path[:done], core.LogLost, core.LogUnsettled, core.LogDelay, core.LogDecode) || cutShort(path) || has(path, core.LogLost)
		gone := false
		for _, d := range path[:done] {
			gone = gone || d.Result == core.ResultStaleGone
		}
		for _, dies := range parties {
			end := core.Fate(path, done, dies, &s.c)
			if end == 0 {
				return fmt.Sprintf("no ending if %s dies after %d steps", dies, done)
			}
			target := dies == core.PartyTargetPlugin && lastRung
			if end&core.EndingLost != 0 && !said && !gone && !target {
				return fmt.Sprintf("lost if %s dies after %d steps", dies, done)
			}
		}
	}
	return ""
}

// Where nothing fails and nobody dies, nothing is doubled, and what wants no
// more is done.
func TestPropertyNothingIsDoubledInPeace(t *testing.T) { report(t, "nothing is doubled in peace") }

func nothingIsDoubledInPeace(s *situation) string {
	path := s.plan.Path(func(core.Step) core.Result { return core.ResultDone }, nil)
	end := core.Fate(path, len(path), core.PartyNobody, &s.c)
	switch o := s.c.Outcome.Kind; {
	case end&core.EndingDoubled != 0:
		return "it is doubled"
	case (o == core.OutcomeAck || o == core.OutcomeDrop) && !s.capped && end != core.EndingDone:
		return "it ends " + end.String()
	}
	return ""
}
