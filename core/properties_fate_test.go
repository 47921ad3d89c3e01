// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/longshore-go/longshore/core"
)

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
	if row && last.Result != core.ResultCut && (last.Step.Code != core.LogDouble || !s.retainsProcess(path)) {
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
