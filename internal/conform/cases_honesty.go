// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func honestyCases() []Case {
	return append([]Case{
		{
			ID: "honesty/ack", Section: sectionVerdicts,
			Claim:   "Where nothing can be acked ACK is answered UNSUPPORTED and the delivery is forgotten.",
			Applies: applies(reads, lacking("an ack", canAck)), Needs: feeds,
			Run: func(t *Trial) {
				t.refuses("no ack", not(canAck), frame.VerdictRun{Kind: core.VerdictAck})
			},
		},
		{
			ID: "honesty/requeue", Section: sectionVerdicts,
			Claim:   "Where nothing can be handed back REQUEUE is answered UNSUPPORTED and the delivery is forgotten.",
			Applies: applies(reads, lacking("a requeue", canRequeue)), Needs: feeds,
			Run: func(t *Trial) {
				t.refuses("no requeue", not(canRequeue), frame.VerdictRun{Kind: core.VerdictRequeue}, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: time.Second})
			},
		},
		{
			ID: "honesty/delay", Section: sectionVerdicts,
			Claim:   "Where deliveries are handed back at once only, REQUEUE with a delay is answered UNSUPPORTED and nothing is handed back.",
			Applies: applies(reads, with("a requeue at once only", requeuesNow)), Needs: feeds,
			Run: func(t *Trial) {
				t.refuses("a requeue at once only", requeuesNow, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: time.Millisecond}, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: time.Hour})
			},
		},
		{
			ID: "honesty/max-delay", Section: sectionVerdicts,
			Claim:   "REQUEUE with a delay at or beyond max_delay is answered UNSUPPORTED, just below it DONE.",
			Applies: applies(reads, with("a max_delay", hasMaxDelay)), Needs: feeds, Run: honestyMaxDelay,
		},
		{
			ID: "honesty/reject", Section: sectionVerdicts,
			Claim:   "Where there is no reject REJECT is answered UNSUPPORTED and the delivery is forgotten.",
			Applies: applies(reads, lacking("a reject", canReject)), Needs: feeds,
			Run: func(t *Trial) {
				t.refuses("no reject", not(canReject), frame.VerdictRun{Kind: core.VerdictReject, Reason: "not wanted"})
			},
		},
		{
			ID: "honesty/extend", Section: sectionVerdicts,
			Claim:   "Where the hold cannot be prolonged EXTEND is answered UNSUPPORTED, returns no credit, and the delivery goes on.",
			Applies: applies(reads, lacking("a hold that can be prolonged", canExtend)), Needs: feeds, Run: honestyExtend,
		},
		{
			ID: "honesty/max-hold", Section: sectionVerdicts,
			Claim:   "EXTEND by max_hold or more is answered UNSUPPORTED, returns no credit, and the delivery goes on.",
			Applies: applies(reads, with("a hold that can be prolonged", canExtend)), Needs: feeds, Run: honestyMaxHold,
		},
		{
			ID: "honesty/unknown-verdict", Section: sectionVerdicts,
			Claim:   "A verdict of a kind that the plugin does not know is answered UNSUPPORTED and the delivery is forgotten.",
			Applies: reads, Needs: feeds,
			Run: func(t *Trial) {
				everyProfile := func(core.Capabilities) bool { return true }
				t.refuses("any", everyProfile, frame.VerdictRun{Kind: 99}, frame.VerdictRun{Kind: core.VerdictUnspecified}, frame.VerdictRun{Kind: math.MaxUint8})
			},
		},
		{
			ID: "honesty/forgets", Section: sectionCredit,
			Claim:   "What is answered UNSUPPORTED is forgotten as by RELEASE: the source is told nothing, and the message becomes what Unsettled says.",
			Applies: reads, Needs: feeds, Run: honestyForgets,
		},
	}, honestyCallCases()...)
}

func requeuesNow(c core.Capabilities) bool { return c.Requeue == core.RequeueNow }
func hasMaxDelay(c core.Capabilities) bool { return canDelay(c) && c.MaxDelay > 0 }

// refuses sends verdicts that a profile does not allow, each in a window of one:
// each is answered UNSUPPORTED, the delivery is forgotten, and the next message
// comes since the credit is back.
func (t *Trial) refuses(what string, f func(c core.Capabilities) bool, runs ...frame.VerdictRun) {
	const tries = 4 // for a message of such a profile
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(1, windowBytes)
	tried := 0
	for _, run := range runs {
		for range tries {
			d := s.first(t.Feed(p, 1))[0]
			if !f(d.Caps) {
				s.Finish(d)
				continue
			}
			tried++
			if s.expect(d, run, frame.SettleUnsupported) {
				s.forgotten(d, &run)
			}
			break
		}
	}
	if tried == 0 {
		t.Skipf("no message came with a profile that has %s", what)
	}
	s.nextComes("a verdict was answered UNSUPPORTED, which returns its credit")
	s.leave()
}

// forgotten expects later verdicts for a delivery to be stale behind one.
func (s *Sub) forgotten(d *Delivery, run *frame.VerdictRun) {
	for _, kind := range []core.VerdictKind{core.VerdictRelease, core.VerdictAck} {
		if r := s.Result(frame.VerdictRun{First: d.ID, Kind: kind}); r.Status != frame.SettleStale && !s.voided(d) {
			s.t.Errorf("%v of delivery %d behind %s, by which it is forgotten, was answered %s in place of STALE", kind, d.ID, verdictWord(run), statusWord(r.Status))
		}
	}
}

// nextComes feeds one message into a window that has room, since why.
func (s *Sub) nextComes(why string) {
	keys := s.t.Feed(s.p, 1)
	if !s.more(s.t.Subject.Wait) {
		s.t.Fatalf("no message came within %v though %s%s", s.t.Subject.Wait, why, s.state())
	}
	if d := s.Next(); d.Key != keys[0] {
		s.letGo(d)
		s.first(keys)
	}
}

// honestyMaxDelay goes to the limit and beyond. What is accepted is left with
// its delay where that is long.
func honestyMaxDelay(t *Trial) {
	const longest = time.Hour
	_, s := t.reading()
	ds := t.of(s.feedTake(8), "a max_delay", hasMaxDelay)
	for i, d := range ds {
		limit := d.Caps.MaxDelay
		if i == len(ds)-1 && limit <= longest && limit > 1 {
			s.expect(d, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: limit - 1}, frame.SettleDone)
			continue
		}
		beyond := []time.Duration{limit, min(limit, math.MaxInt64-1) + 1, math.MaxInt64}
		run := frame.VerdictRun{Kind: core.VerdictRequeue, Delay: beyond[i%len(beyond)]}
		if s.expect(d, run, frame.SettleUnsupported) {
			s.forgotten(d, &run)
		}
	}
	s.nextComes("verdicts were answered UNSUPPORTED, which returns their credit")
	s.leave()
}

// honestyExtend expects that a delivery goes on: it keeps its place in a window
// of one and can be settled.
func honestyExtend(t *Trial) {
	const tries = 4
	p := t.Connected()
	s := p.Open(t.registration())
	s.Credit(1, windowBytes)
	var d *Delivery
	for range tries {
		if d = s.first(t.Feed(p, 1))[0]; !canExtend(d.Caps) {
			break
		}
		s.Finish(d)
		d = nil
	}
	if d == nil {
		t.Skipf("no message came with a profile that has no hold that can be prolonged")
	}
	s.expect(d, frame.VerdictRun{Kind: core.VerdictExtend, Hold: time.Second}, frame.SettleUnsupported)
	if t.kept(d.Caps) {
		keys := t.Feed(p, 1)
		if more := s.Within(t.Subject.Quiet / 2); len(more) > 0 && !s.voided(d) {
			t.Errorf("a delivery came into a window of 1 behind EXTEND, which was UNSUPPORTED: the delivery goes on and keeps its credit")
			s.Finish(more...)
		}
		s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
		if !t.Failed() {
			s.first(keys)
		}
	} else {
		s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	}
	s.leave()
}

// honestyMaxHold asks for a longer hold than there is.
func honestyMaxHold(t *Trial) {
	_, s := t.reading()
	ds := t.of(s.first(t.Feed(s.p, 4)), "a hold that can be prolonged", canExtend)
	for _, d := range ds {
		for _, hold := range []time.Duration{d.Caps.MaxHold, 2 * d.Caps.MaxHold} {
			s.expect(d, frame.VerdictRun{Kind: core.VerdictExtend, Hold: hold}, frame.SettleUnsupported)
		}
		s.expect(d, frame.VerdictRun{Kind: ending(d.Caps)}, frame.SettleDone)
	}
	s.leave()
}

// kept reports whether a message waits for room in the window.
func (t *Trial) kept(c core.Capabilities) bool { return canAck(c) && returnsAtAll(c) }

// honestyForgets answers nothing but what is UNSUPPORTED, and looks at what the
// source makes of it.
func honestyForgets(t *Trial) {
	p, s := t.reading()
	ds := s.feedTake(6)
	l := &left{}
	quiet := true // until the first hold ends
	for i, d := range ds {
		run := frame.VerdictRun{Kind: 99}
		if i%2 == 1 && !canReject(d.Caps) {
			run = frame.VerdictRun{Kind: core.VerdictReject}
		}
		if !s.expect(d, run, frame.SettleUnsupported) {
			continue
		}
		quiet = quiet && !hasHold(d.Caps)
		l.sort(t, d)
	}
	if quiet {
		s.absent(keysOf(ds), "UNSUPPORTED tells the source nothing, so nothing is handed back")
	}
	s.End()
	p.Close()
	_, s = t.reading()
	s.again(l.back, keysOf(l.lost), leftReason)
	s.absent(keysOf(l.lost), leftReason)
	s.leave()
}
