// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"math"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/rows"
)

// hot are decisions that a busy service makes.
var hot = []struct {
	name string
	p    core.Policy
	c    core.Case
}{
	{"ack", core.Policy{MaxAttempts: 3}, core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: core.Outcome{Kind: core.OutcomeAck}}},
	{"ack without acks", core.Policy{}, core.Case{Source: rows.Kinds()["U"], Outcome: core.Outcome{Kind: core.OutcomeAck}}},
	{"copy", core.Policy{MaxAttempts: 3}, core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}}},
	{"requeue", core.Policy{MaxAttempts: 3}, core.Case{Source: rows.Kinds()["C"], Attempt: core.Attempt{Native: 1}, Outcome: core.Outcome{Kind: core.OutcomeRetry}}},
	{"dead letter", core.Policy{MaxAttempts: 1, DeadLetter: true}, core.Case{Source: rows.Kinds()["A"], Retry: open, Dead: open, Journal: true, Outcome: core.Outcome{Kind: core.OutcomeRetry}}},
	{"stored copy", core.Policy{}, core.Case{Source: rows.Kinds()["A"], Retry: open, Journal: true, Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, After: time.Second}}},
}

// carryOut walks a plan as the executor does.
func carryOut(p *core.Plan) int {
	n := 0
	c := p.Start()
	for {
		if _, ok := c.Next(core.ResultDone); !ok {
			return n
		}
		n++
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	for _, h := range hot {
		t.Run(h.name, func(t *testing.T) {
			p, c := h.p, h.c
			var plan core.Plan
			steps := 0
			if n := testing.AllocsPerRun(100, func() {
				if core.Admit(&p, &c) {
					core.Decide(&p, &c, &plan)
					steps += carryOut(&plan)
				}
			}); n != 0 {
				t.Errorf("%v allocations, want none", n)
			}
			if steps == 0 {
				t.Error("no step was walked")
			}
		})
	}
}

func TestCopyHeadersAllocateLittle(t *testing.T) {
	h := headers("a", "1", "b", "2", core.CountHeader, "3")
	into := make(core.Headers, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		count, _ := h.Count()
		into = h.ForCopy(into[:0], count+1)
	}); n > 1 {
		t.Errorf("%v allocations, want the count's alone", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			var plan core.Plan
			for b.Loop() {
				core.Decide(&h.p, &h.c, &plan)
			}
		})
	}
}

func BenchmarkDecideAndWalk(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			var plan core.Plan
			for b.Loop() {
				core.Decide(&h.p, &h.c, &plan)
				carryOut(&plan)
			}
		})
	}
}

// S-GEN-25, 72, S-PUL-04, 36.
func TestAttemptNumber(t *testing.T) {
	for _, tt := range []struct {
		name   string
		a      core.Attempt
		counts core.CountMode
		copies bool
		want   uint64
	}{
		{"first of a source that does not count", core.Attempt{}, core.CountNone, true, 1},
		{"third", core.Attempt{Copies: 2}, core.CountNone, true, 3},
		{"saturates", core.Attempt{Copies: math.MaxUint64}, core.CountNone, true, math.MaxUint64},
		{"unknown where nothing counts", core.Attempt{Copies: 2}, core.CountNone, false, 0},
		{"the source's own, the header ignored", core.Attempt{Native: 1, Copies: 9}, core.CountNative, true, 1},
		{"the source counts and does not say", core.Attempt{Copies: 9}, core.CountNative, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a.Number(core.Capabilities{Counts: tt.counts}, tt.copies); got != tt.want {
				t.Errorf("number is %d, want %d", got, tt.want)
			}
		})
	}
}

// D17: at once, then 50 ms doubling to a second.
func TestFloor(t *testing.T) {
	const ms = time.Millisecond
	for k, want := range []time.Duration{0, 0, 50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second, time.Second} {
		if got := core.Floor(uint32(k)); got != want {
			t.Errorf("floor of return %d is %s, want %s", k, got, want)
		}
	}
	if got := core.Floor(math.MaxUint32); got != time.Second {
		t.Errorf("floor of the last return there is is %s", got)
	}
}

// The floor is for a plain requeue without a cap, and takes the best that the
// source offers.
func TestFloorTakesWhatTheSourceOffers(t *testing.T) {
	set := func(requeue core.RequeueMode, maxDelay, maxHold time.Duration) core.Capabilities {
		return core.Capabilities{Ack: core.AckSingle, Requeue: requeue, MaxDelay: maxDelay, MaxHold: maxHold, Unsettled: core.UnsettledOnDisconnect}
	}
	for _, tt := range []struct {
		name string
		p    core.Policy
		s    core.Capabilities
		held time.Duration
		want string
	}{
		{"delayed", core.Policy{}, set(core.RequeueDelayed, 0, 0), 0, "REQUEUE(1s)"},
		{"held", core.Policy{}, set(core.RequeueNow, 0, 0), 0, "HOLD(1s); REQUEUE"},
		{"held although delayed, beyond MaxDelay", core.Policy{}, set(core.RequeueDelayed, time.Second, 0), 0, "HOLD(1s); REQUEUE"},
		{"beyond both", core.Policy{}, set(core.RequeueDelayed, time.Second, time.Second), 0, "REQUEUE(max)"},
		{"as long as it may be held", core.Policy{}, set(core.RequeueNow, 0, time.Second), 100 * time.Millisecond, "HOLD(max); REQUEUE"},
		{"held long enough already", core.Policy{}, set(core.RequeueNow, 0, time.Second), 950 * time.Millisecond, "REQUEUE"},
		{"none under a cap", core.Policy{MaxAttempts: 3}, set(core.RequeueNow, 0, 0), 0, "REQUEUE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := core.Case{Source: tt.s, Held: tt.held, Floor: time.Second, Outcome: core.Outcome{Kind: core.OutcomeRetry}}
			var plan core.Plan
			core.Decide(&tt.p, &c, &plan)
			if got := plan.String(); got != tt.want {
				t.Errorf("plan is %s, want %s", got, tt.want)
			}
		})
	}
}

// What no row shows: the limits are reached in the ladder too.
func TestPlansBesideTheRows(t *testing.T) {
	held := rows.Kinds()["A"]
	held.MaxHold = 30 * time.Second
	lease := rows.Kinds()["B"]
	lease.MaxDelay, lease.MaxHold = 10*time.Second, 10*time.Second
	lost := rows.Kinds()["C"]
	lost.Unsettled = core.UnsettledLost
	process := core.Route{State: core.RouteOpen, Caps: core.Publishing{Retains: core.RetainProcess}}
	retry := core.Outcome{Kind: core.OutcomeRetry}
	later := func(d time.Duration) core.Outcome { return core.Outcome{Kind: core.OutcomeRetryAfter, After: d} }
	fail := func(do core.Action, r core.Result) func(core.Step) core.Result {
		return func(s core.Step) core.Result {
			if s.Do == do {
				return r
			}
			return core.ResultDone
		}
	}
	for _, tt := range []struct {
		name   string
		p      core.Policy
		c      core.Case
		result func(core.Step) core.Result
		want   string
	}{
		{"the rung's hold is what is left", core.Policy{MaxAttempts: 3},
			core.Case{Source: held, Retry: open, Outcome: retry, Held: 26500 * time.Millisecond}, fail(core.ActPublish, core.ResultTransient),
			"PUBLISH(retry,1)=TRANSIENT; WARN(L-COPY); HOLD(500ms); REQUEUE"},
		{"nothing is left for the rung's hold", core.Policy{MaxAttempts: 3},
			core.Case{Source: held, Retry: open, Outcome: retry, Held: 29500 * time.Millisecond}, fail(core.ActPublish, core.ResultTransient),
			"PUBLISH(retry,1)=TRANSIENT; WARN(L-COPY); REQUEUE"},
		{"a counting source's longest is its delay or its hold", core.Policy{},
			core.Case{Source: lease, Outcome: later(time.Minute), Held: 5 * time.Second}, nil, "WARN(L-DELAY); REQUEUE(max)"},
		{"gone on a counting source: no copy, and said", core.Policy{MaxAttempts: 3},
			core.Case{Source: lost, Retry: open, Attempt: core.Attempt{Native: 1}, Outcome: retry, Void: core.VoidGone}, nil, "WARN(L-UNS)"},
		{"gone at the cap", core.Policy{MaxAttempts: 3, DeadLetter: true},
			core.Case{Source: lost, Dead: open, Attempt: core.Attempt{Native: 3}, Outcome: retry, Void: core.VoidGone}, fail(core.ActPublish, core.ResultRefused),
			"WARN(L-CAP-DL); PUBLISH(dead,1)=REFUSED; ERROR(L-LOST)"},
		{"gone with a delay", core.Policy{},
			core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: later(time.Second), Void: core.VoidGone}, nil, "PUBLISH+1s(retry,1)"},
		{"gone and acked", core.Policy{}, core.Case{Source: rows.Kinds()["A"], Outcome: core.Outcome{Kind: core.OutcomeAck}, Void: core.VoidGone}, nil, "NONE"},
		{"a returning delivery has no steps", core.Policy{MaxAttempts: 1, DeadLetter: true},
			core.Case{Source: rows.Kinds()["A"], Dead: open, Outcome: core.Outcome{Kind: core.OutcomeFailFast, Cause: core.CausePanic}, Void: core.VoidReturns}, nil, "NONE"},
		{"cumulative, with a journal", core.Policy{MaxAttempts: 1, DeadLetter: true},
			core.Case{Source: rows.Kinds()["K"], Retry: open, Dead: open, Outcome: retry, Journal: true}, fail(core.ActPublish, core.ResultTransient),
			"WARN(L-CAP-DL); PUBLISH(dead,1)=TRANSIENT; WARN(L-COPY); PARK(dead,1); ACK"},
		{"a row that cannot become a parked one stays", core.Policy{MaxAttempts: 3},
			core.Case{Source: rows.Kinds()["U"], Retry: process, Outcome: retry, Journal: true},
			func(s core.Step) core.Result {
				switch s.Do {
				case core.ActPublish:
					return core.ResultTransient
				case core.ActPark:
					return core.ResultFailed
				default:
					return core.ResultDone
				}
			},
			"STORE(retry,1,0s); PUBLISH(retry,1)=TRANSIENT; WARN(L-COPY); PARK(retry,1)=FAILED; RELEASE"},
		{"a requeue that comes too late for a delivery that is gone", core.Policy{},
			core.Case{Source: rows.Kinds()["A"], Outcome: retry}, fail(core.ActRequeue, core.ResultStaleGone), "REQUEUE=STALE; WARN(L-UNS)"},
		{"a requeue after a hold that fails", core.Policy{},
			core.Case{Source: rows.Kinds()["A"], Outcome: retry, Floor: time.Second}, fail(core.ActRequeue, core.ResultFailed), "HOLD(1s); REQUEUE=FAILED; WARN(L-NACK)"},
		{"it comes back during the hold", core.Policy{},
			core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: later(time.Second), Full: true}, fail(core.ActHold, core.ResultStaleReturns), "HOLD(1s)=STALE"},
		{"it comes back after its row was stored", core.Policy{},
			core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: later(time.Second), Journal: true}, fail(core.ActAck, core.ResultStaleReturns),
			"STORE(retry,1,1s); ACK=STALE; FORGET"},
		{"it comes back while its copy is under way", core.Policy{MaxAttempts: 3},
			core.Case{Source: rows.Kinds()["A"], Retry: process, Outcome: retry, Journal: true}, fail(core.ActPublish, core.ResultStaleReturns),
			"STORE(retry,1,0s); PUBLISH(retry,1)=STALE; FORGET"},
		{"cut", core.Policy{MaxAttempts: 3},
			core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: retry}, fail(core.ActPublish, core.ResultCut), "PUBLISH(retry,1)=CUT"},
		{"an undecodable delivery whose ack fails", core.Policy{},
			core.Case{Source: rows.Kinds()["M"], Outcome: core.Outcome{Kind: core.OutcomeDrop, Cause: core.CauseUndecodable}}, fail(core.ActAck, core.ResultFailed),
			"NORUN; WARN(L-DEC); ACK=FAILED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var plan core.Plan
			core.Decide(&tt.p, &tt.c, &plan)
			result := tt.result
			if result == nil {
				result = fail(core.ActNone, core.ResultDone)
			}
			if got := plan.Path(result, nil).String(); got != tt.want {
				t.Errorf("plan is %s, want %s", got, tt.want)
			}
		})
	}
}

// An unknown receipt is sent again until the caller says that it is enough.
func TestCursorSendsAgain(t *testing.T) {
	c := core.Case{Source: rows.Kinds()["M"], Retry: open, Outcome: core.Outcome{Kind: core.OutcomeRetry}}
	p := core.Policy{MaxAttempts: 3}
	var plan core.Plan
	core.Decide(&p, &c, &plan)
	n := 0
	path := plan.Path(func(s core.Step) core.Result {
		if s.Do != core.ActPublish {
			return core.ResultDone
		}
		if n++; n < 4 {
			return core.ResultUnknown
		}
		return core.ResultTransient
	}, nil)
	const pub = "PUBLISH(retry,1)"
	want := pub + "=UNKNOWN; " + pub + "=UNKNOWN; " + pub + "=UNKNOWN; " + pub + "=TRANSIENT; WARN(L-COPY); KEEP"
	if got := path.String(); got != want {
		t.Errorf("path is %s, want %s", got, want)
	}
}

func TestCursorIsAValue(t *testing.T) {
	h := hot[2]
	var plan core.Plan
	core.Decide(&h.p, &h.c, &plan)
	c := plan.Start()
	c.Next(core.ResultDone)
	d := c
	first, _ := c.Next(core.ResultDone)
	second, _ := d.Next(core.ResultDone)
	if first != second {
		t.Errorf("two cursors at one place give %v and %v", first, second)
	}
	for range 5 {
		c.Next(core.ResultDone)
	}
	if s, ok := c.Next(core.ResultDone); ok {
		t.Errorf("an ended cursor gives %v", s)
	}
	var zero core.Cursor
	if s, ok := zero.Next(core.ResultDone); ok {
		t.Errorf("a cursor without a plan gives %v", s)
	}
}
