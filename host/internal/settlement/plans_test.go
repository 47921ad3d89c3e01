// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/rows"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// leastTrials is a number of plans that the table asks for at least: a reader
// that loses rows must not go unseen.
const leastTrials = 500

// Every row is carried out from the delivery to the last receipt, with the
// results that it names. What was carried out is what the row says, and what
// the plan prints for the same results.
func TestRows(t *testing.T) {
	all, err := rows.Read("../../../core/testdata/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	others := rows.Others()
	ran := 0
	for _, r := range all {
		if others[r.ID] != "" || r.Outcome == "start" {
			continue
		}
		trials, err := r.Trials()
		if err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		for _, x := range trials {
			ran++
			t.Run(r.ID+","+x.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runTrial(t, x) })
			})
		}
	}
	if ran < leastTrials {
		t.Errorf("%d plans were carried out, want at least %d", ran, leastTrials)
	}
}

// runTrial carries out one plan.
func runTrial(t *testing.T, x rows.Trial) {
	c := x.Case
	want := strings.ReplaceAll(x.Want, "REQUEUE(7s)=CUT", "REQUEUE(7s)") // the plugin's wait is cut, not the verdict
	steps := parse(x)
	j := newJournal()
	j.failStore, j.failPark = steps.fails(core.ActStore), steps.fails(core.ActPark)
	b := newBench(t, c.Source, func(*Delivery) Said {
		if c.Void != core.VoidLive {
			time.Sleep(time.Second)
		}
		said := Said{Outcome: c.Outcome}
		if c.Outcome.Cause != core.CauseReturned {
			said.Err = errors.New("broken")
		}
		return said
	}, func(s *setup) {
		s.o.Policy = x.Policy
		s.o.RetryTo, s.o.Dead = c.Retry, c.Dead
		s.o.RetryTo.To = core.Destination{Endpoint: "in", Name: x.Names.Retry}
		s.o.Dead.To = core.Destination{Endpoint: "in", Name: x.Names.Dead}
		if c.Retry.State == core.RouteRefused {
			s.o.RetryFunc = func(*Delivery) (core.Route, error) { return core.Route{}, errors.New("no topic") }
		}
		if c.Journal {
			s.o.Journal = j
		}
		s.waiting.Messages = 10
		s.plugin = steps.script
	})
	if c.Full {
		for range 10 {
			b.waiting.reserve(b.lane, 1)
		}
		defer func() {
			for range 10 {
				b.waiting.release(b.lane, 1)
			}
		}()
	}
	m := message("x")
	m.Identity = []byte("id")
	m.Attempt = c.Attempt.Native
	m.Message.Headers = x.Headers
	if len(x.Headers) == 0 && c.Attempt.Copies > 0 {
		m.Message.Headers = core.Headers{}.ForCopy(nil, c.Attempt.Copies)
	}
	b.lane.mu.Lock()
	for n := uint32(1); core.Floor(n) < c.Floor; n++ {
		b.lane.floors.returned(m.Identity)
	}
	b.lane.mu.Unlock()
	synctest.Wait()
	b.p.deliver(m)
	synctest.Wait()
	if c.Void != core.VoidLive {
		b.p.void(&transportpb.Void{All: true, Returns: c.Void == core.VoidReturns})
	}
	if strings.Contains(want, "=CUT") {
		time.Sleep(time.Second)
		synctest.Wait()
		b.waiting.cut(cutAll)
	} else {
		time.Sleep(2 * time.Hour)
	}
	if strings.HasSuffix(want, "KEEP") {
		b.lane.StopIntake()
	}
	synctest.Wait()
	got := b.observed()
	if len(got) != 1 {
		t.Fatalf("%d plans were carried out: %v", len(got), got)
	}
	if diff := cmp.Diff(want, core.Path(got[0].trace).Text(x.Names)); diff != "" {
		t.Error(diff)
	}
	checkPrinted(t, got[0])
	checkBooks(t, b, j, got[0])
}

// scripted are the results that a row names, by action.
type scripted struct {
	results map[core.Action][]core.Result
	returns bool
}

// parse finds the results that the plugin and the journal are to give.
func parse(x rows.Trial) scripted {
	s := scripted{results: make(map[core.Action][]core.Result), returns: strings.HasPrefix(x.Name, "returns")}
	results := x.Results()
	for i, text := range strings.Split(x.Want, "; ") {
		word, _, _ := strings.Cut(text, "(")
		word, _, _ = strings.Cut(word, "=")
		action, ok := map[string]core.Action{
			"PUBLISH": core.ActPublish, "ACK": core.ActAck, "STORE": core.ActStore, "PARK": core.ActPark,
		}[strings.SplitN(word, "+", 2)[0]]
		if ok {
			s.results[action] = append(s.results[action], results[i])
		}
	}
	return s
}

// fails reports whether the action fails.
func (s scripted) fails(a core.Action) bool {
	return len(s.results[a]) > 0 && s.results[a][0] == core.ResultFailed
}

// script makes the plugin answer as the row says.
func (s scripted) script(p *plugin) {
	p.receipt = func(_ *frame.Outgoing, n int) (frame.Receipt, bool) {
		r := core.ResultDone
		if all := s.results[core.ActPublish]; len(all) > 0 {
			r = all[min(n, len(all))-1]
		}
		switch r {
		case core.ResultTransient:
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no route", Transient: true}}, true
		case core.ResultRefused:
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no rights"}}, true
		case core.ResultUnknown:
			return frame.Receipt{Status: frame.ReceiptUnknown}, true
		default:
			return frame.Receipt{Status: frame.ReceiptConfirmed}, true
		}
	}
	p.answer = func(v frame.VerdictRun) (frame.SettleStatus, *core.Fault) {
		if v.Kind != core.VerdictAck || len(s.results[core.ActAck]) == 0 {
			return frame.SettleDone, nil
		}
		switch s.results[core.ActAck][0] {
		case core.ResultFailed:
			return frame.SettleFailed, &core.Fault{Message: "connection lost"}
		case core.ResultStaleReturns, core.ResultStaleGone:
			p.down <- frame.SubscribeResponse{Void: &transportpb.Void{All: true, Returns: s.returns}}
			return frame.SettleStale, nil
		default:
			return frame.SettleDone, nil
		}
	}
}

// checkPrinted compares the trace with what the plan prints for the same
// results.
func checkPrinted(t *testing.T, o observed) {
	t.Helper()
	i := 0
	printed := o.plan.Path(func(core.Step) core.Result {
		i++
		if i > len(o.trace) {
			return core.ResultDone
		}
		return o.trace[i-1].Result
	}, nil)
	if diff := cmp.Diff(printed.Text(core.Names{}), core.Path(o.trace).Text(core.Names{})); diff != "" {
		t.Errorf("printed and carried out differ: %s", diff)
	}
}

// checkBooks compares what left with the steps that say so.
func checkBooks(t *testing.T, b *bench, j *journal, o observed) {
	t.Helper()
	var verdicts, published, lines int
	for _, d := range o.trace {
		switch d.Step.Do {
		case core.ActAck, core.ActRequeue, core.ActReject, core.ActRelease, core.ActKeep:
			verdicts++
		case core.ActPublish, core.ActPublishLater:
			if d.Result == core.ResultDone {
				published++
			}
		case core.ActLog:
			lines++
		default:
		}
	}
	if n := len(o.trace); n > 0 && o.trace[n-1].Step.Do == core.ActKeep && o.c.Source.Unsettled == core.UnsettledLost {
		lines++ // the stop says that it is lost
	}
	if got := len(b.p.kinds()); got != verdicts {
		t.Errorf("%d verdicts %v, the trace has %d", got, b.p.kinds(), verdicts)
	}
	if sent := b.p.outgoing(); len(sent) < published {
		t.Errorf("%d were published, the trace has %d", len(sent), published)
	}
	for _, s := range b.p.outgoing() {
		if !s.Headers.Has(core.CountHeader) {
			t.Errorf("a copy left without a count: %+v", s)
		}
	}
	besides := len(b.logs.lines("L-COUNT")) + len(b.logs.lines("L-ABND"))
	if got := len(b.logs.lines("")) - besides; got != lines {
		t.Errorf("%d lines, the trace has %d: %v", got, lines, b.logs.lines(""))
	}
	if c := b.lane.Counters(); c.Received != 1 || c.InWork != 0 {
		t.Errorf("counters %+v", c)
	}
	text := core.Path(o.trace).Text(core.Names{})
	if kept, _ := j.kept(); kept > 0 && !strings.Contains(text, "FORGET") && !strings.Contains(text, "=CUT") {
		t.Errorf("%d rows are left: %v", kept, j.calls)
	}
}
