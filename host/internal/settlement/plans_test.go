// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// notPlans are the rows of the table that are about the start, or about what is
// said of a whole batch, and those that need more than one delivery.
var notPlans = map[string]string{
	"S-GEN-67": "TestReport", "S-GEN-68": "TestEnd", "S-GEN-75": "host", "S-GEN-76": "TestFloor", "S-GEN-91": "TestRetriesAreAlwaysSaid",
}

// Every row is carried out from the delivery to the last receipt. The plan that
// is printed for it, with the results that the row names, equals the one that
// was carried out.
func TestRows(t *testing.T) {
	ran := 0
	for _, r := range readRows(t) {
		if notPlans[r.id] != "" || r.outcome == "start" || r.outcome == "receive" || r.outcome == "end" {
			continue
		}
		for _, p := range r.parts() {
			names, conditions := r.kinds()
			for _, kind := range names {
				for _, d := range r.declarations() {
					for _, o := range r.outcomes(t, p.label) {
						name := strings.Join([]string{r.id, kind, p.label, o.Kind.String()}, ",")
						t.Run(name, func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								runRow(t, r, p, kind, conditions, d, o)
							})
						})
						ran++
					}
				}
			}
		}
	}
	if ran < 130 {
		t.Errorf("%d trials ran", ran)
	}
}

// runRow carries out one trial.
func runRow(t *testing.T, r row, p part, kind string, conditions []string, d declared, o core.Outcome) {
	has := func(w string) bool { return slices.Contains(conditions, w) }
	names := core.Names{Retry: "own", Dead: "q"}
	j := newJournal()
	j.failStore, j.failPark = has("the store fails"), has("publish and park fail")
	caps := capabilities(t, kind, conditions)
	if d.backoff > 0 && o.Kind == core.OutcomeRetry {
		o.Kind, o.After = core.OutcomeRetryAfter, d.backoff
	}
	if strings.HasPrefix(r.expected, "all: ") {
		o.Cause = core.CauseReturned // it is said once for the batch
	}
	said := Said{Outcome: o}
	if o.Cause != core.CauseReturned {
		said.Err = errors.New("broken")
	}
	var b *bench
	b = newBench(t, caps, func(*Delivery) Said {
		if has("its plugin dies while the handler runs") {
			time.Sleep(time.Second)
		}
		return said
	}, func(s *setup) {
		s.o.Policy = d.policy
		if caps.Address == "" {
			s.o.RetryTo = core.Route{}
		}
		if d.to != "" {
			names.Retry = d.to
			s.o.RetryTo = open(d.to, stored)
		}
		if d.to == "fn" {
			s.o.RetryTo = core.Route{}
			s.o.RetryFunc = func(*Delivery) (core.Route, error) { return open("fn", stored), nil }
		}
		if d.policy.DeadLetter {
			s.o.Dead = open("q", stored)
		}
		if has("own delays by itself") {
			s.o.RetryTo.Caps.MaxDelay = time.Hour
		}
		if has("own read by this process alone") {
			s.o.RetryTo.Caps.Retains = core.RetainProcess
		}
		if has("journal") {
			s.o.Journal = j
		}
		s.waiting.Messages = 10
		s.plugin = func(pl *plugin) { script(pl, p.label, has) }
	})
	if has("bound of waiting copies reached") {
		for b.waiting.reserve(1) {
		}
		defer func() {
			for range 10 {
				b.waiting.release(1)
			}
		}()
	}
	m := message("x")
	m.Identity = []byte("id")
	a := r.counts(p.label)
	m.Attempt = a.Native
	if a.Copies > 0 && len(d.header) == 0 {
		m.Message.Headers = append(m.Message.Headers, core.Header{Name: core.CountHeader, Value: []byte{'0' + byte(a.Copies)}})
	}
	for _, h := range d.header {
		m.Message.Headers = append(m.Message.Headers, core.Header{Name: h[0], Value: []byte(h[1])})
	}
	synctest.Wait()
	b.p.deliver(m)
	synctest.Wait()
	if has("its plugin dies while the handler runs") {
		b.p.void(&transportpb.Void{All: true, Returns: p.label == "returns"})
	}
	if strings.Contains(p.want, "=CUT") {
		time.Sleep(time.Minute)
		synctest.Wait()
		b.waiting.cut(cutAll)
	} else {
		time.Sleep(2 * time.Hour)
	}
	if strings.HasSuffix(p.want, "KEEP") {
		b.lane.StopIntake()
	}
	synctest.Wait()
	got := b.observed()
	if len(got) != 1 {
		t.Fatalf("%v\n%d plans were carried out: %v", r, len(got), got)
	}
	if diff := cmp.Diff(p.want, core.Path(got[0].trace).Text(names)); diff != "" {
		t.Errorf("%v\n%s", r, diff)
	}
	checkPrinted(t, got[0])
	checkBooks(t, b, j, got[0])
}

// script makes the plugin answer as the conditions say.
func script(p *plugin, label string, has func(string) bool) {
	fails := has("publish fails beyond the bound") || has("publish and park fail")
	p.receipt = func(_ *frame.Outgoing, n int) (frame.Receipt, bool) {
		r := frame.Receipt{Status: frame.ReceiptConfirmed}
		switch {
		case fails, has("publish fails and heals within the bound") && n < 4:
			r = frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no route", Transient: true}}
		case has("publish refused for good"):
			r = frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no rights"}}
		case has("receipt unknown") && n == 1:
			r = frame.Receipt{Status: frame.ReceiptUnknown}
		}
		return r, true
	}
	p.answer = func(v frame.VerdictRun) (frame.SettleStatus, *core.Fault) {
		switch {
		case v.Kind == core.VerdictAck && has("the ack fails"):
			return frame.SettleFailed, &core.Fault{Message: "connection lost"}
		case v.Kind == core.VerdictAck && has("the ack is stale after the copy"):
			p.down <- frame.SubscribeResponse{Void: &transportpb.Void{All: true, Returns: label == "returns"}}
			return frame.SettleStale, nil
		}
		return frame.SettleDone, nil
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
		}
	}
	if got := len(b.p.kinds()); got != verdicts {
		t.Errorf("%d verdicts %v, the trace has %d", got, b.p.kinds(), verdicts)
	}
	if sent := b.p.outgoing(); len(sent) < published {
		t.Errorf("%d were published, the trace has %d", len(sent), published)
	}
	for _, s := range b.p.outgoing() {
		if n := s.Headers.Value(core.CountHeader); n == "" {
			t.Errorf("a copy left without a count: %+v", s)
		}
	}
	counted := len(b.logs.lines("L-COUNT"))
	if got := len(b.logs.lines("")) - counted - len(b.logs.lines("L-ABND")); got != lines {
		t.Errorf("%d lines, the trace has %d: %v", got, lines, b.logs.lines(""))
	}
	c := b.lane.Counters()
	if c.Received != 1 || c.InWork != 0 {
		t.Errorf("counters %+v", c)
	}
	if rows, _ := j.kept(); rows > 0 && !strings.Contains(core.Path(o.trace).Text(core.Names{}), "FORGET") &&
		!strings.Contains(core.Path(o.trace).Text(core.Names{}), "=CUT") {
		t.Errorf("%d rows are left: %v", rows, j.calls)
	}
}
