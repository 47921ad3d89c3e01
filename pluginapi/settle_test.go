// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// E-10: of several verdicts on one delivery the first wins, in whatever order
// and grouping they come; every verdict is answered once.
func TestEveryVerdictIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "deliveries")
		tr := newQueueTransport(everything())
		l, end := drive(t, tr)
		defer end()
		s, err := l.Subscribe(t.Context())
		must(rt, err)
		must(rt, s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}}))
		tr.queue("q").fill(n, 1)
		must(rt, s.Send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: 1000, Bytes: 1 << 20}}))
		for seen := 0; seen < n; {
			var r frame.SubscribeResponse
			must(rt, s.Recv(&r))
			if r.Deliveries != nil {
				seen += len(r.Deliveries.Items)
				r.Deliveries.Release()
			}
		}
		want := make(map[uint64]map[frame.SettleStatus]int) // by id
		owed := 0
		gone := make(map[uint64]bool)
		for range rapid.IntRange(1, 40).Draw(rt, "runs") {
			run := frame.VerdictRun{
				First: rapid.Uint64Range(1, uint64(n)+3).Draw(rt, "first"),
				Count: rapid.Uint64Range(0, 10).Draw(rt, "count"),
				Kind: rapid.SampledFrom([]core.VerdictKind{
					core.VerdictAck, core.VerdictReject, core.VerdictRelease, core.VerdictExtend,
				}).Draw(rt, "kind"),
				Hold: time.Second, WantResult: true,
			}
			for i := range max(run.Count, 1) {
				id := run.First + i
				status := frame.SettleDone
				if id > uint64(n) || gone[id] {
					status = frame.SettleStale
				}
				gone[id] = gone[id] || run.Kind != core.VerdictExtend
				if want[id] == nil {
					want[id] = make(map[frame.SettleStatus]int)
				}
				want[id][status]++
				owed++
			}
			must(rt, s.Send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{run}}))
		}
		got := make(map[uint64]map[frame.SettleStatus]int)
		for owed > 0 {
			var r frame.SubscribeResponse
			must(rt, s.Recv(&r))
			for _, res := range r.Settled {
				for i := range max(res.Count, 1) {
					if got[res.First+i] == nil {
						got[res.First+i] = make(map[frame.SettleStatus]int)
					}
					got[res.First+i][res.Status]++
					owed--
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("answers by id (-want +got):\n%s", d)
		}
	})
}

// A verdict that the profile does not allow is answered by the SDK: the
// transport does not see it, and the delivery's credit returns.
func TestUnsupportedVerdicts(t *testing.T) {
	none := core.Capabilities{}
	now := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow}
	delayed := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: time.Second}
	endless := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed}
	rejects := core.Capabilities{Ack: core.AckSingle, Reject: core.RejectDrops}
	holds := core.Capabilities{Ack: core.AckSingle, MaxHold: time.Minute, Extend: true}
	for _, tc := range []struct {
		name string
		c    core.Capabilities
		run  frame.VerdictRun
		want bool // supported
	}{
		{"ack without acks", none, frame.VerdictRun{Kind: core.VerdictAck}, false},
		{"ack", now, frame.VerdictRun{Kind: core.VerdictAck}, true},
		{"requeue without requeue", rejects, frame.VerdictRun{Kind: core.VerdictRequeue}, false},
		{"requeue now", now, frame.VerdictRun{Kind: core.VerdictRequeue}, true},
		{"requeue delayed where it is now only", now, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: 1}, false},
		{"requeue below the limit", delayed, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: time.Second - 1}, true},
		{"requeue at the limit", delayed, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: time.Second}, false},
		{"requeue without a limit", endless, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: math.MaxInt64}, true},
		{"requeue before now", endless, frame.VerdictRun{Kind: core.VerdictRequeue, Delay: -1}, false},
		{"reject without reject", now, frame.VerdictRun{Kind: core.VerdictReject}, false},
		{"reject", rejects, frame.VerdictRun{Kind: core.VerdictReject}, true},
		{"extend without extend", now, frame.VerdictRun{Kind: core.VerdictExtend, Hold: 1}, false},
		{"extend by nothing", holds, frame.VerdictRun{Kind: core.VerdictExtend}, false},
		{"extend", holds, frame.VerdictRun{Kind: core.VerdictExtend, Hold: 1}, true},
		{"extend by the limit", holds, frame.VerdictRun{Kind: core.VerdictExtend, Hold: time.Minute}, false},
		{"release", none, frame.VerdictRun{Kind: core.VerdictRelease}, true},
		{"none", now, frame.VerdictRun{}, false},
		{"one that is not known", now, frame.VerdictRun{Kind: 17}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(tc.c)
			b := serve(t, tr).connect()
			q := tr.queue("q")
			q.fill(2, 1)
			st := b.subscribe("q")
			st.credit(1, 1<<20)
			st.got(1)
			tc.run.First, tc.run.WantResult = 1, true
			st.settle(tc.run)
			want := frame.SettleDone
			if !tc.want {
				want = frame.SettleUnsupported
			}
			if d := cmp.Diff(map[uint64]frame.SettleStatus{1: want}, st.results(1)); d != "" {
				t.Errorf("results (-want +got):\n%s", d)
			}
			if f := st.settled[0].Fault; !tc.want && (f == nil || f.Code != core.FaultUnsupported) {
				t.Errorf("fault is %v", f)
			}
			seen := tc.want && tc.run.Kind != core.VerdictRelease
			if got := len(q.verdicts) == 1; got != seen {
				t.Errorf("the transport saw the verdict: %v, want %v", got, seen)
			}
			if tc.run.Kind != core.VerdictExtend {
				st.got(2)
			}
		})
	}
}

// What a transport answers, or does not.
func TestAnswersOfTransports(t *testing.T) {
	fault := newFault(core.FaultUnavailable, "link is down")
	for _, tc := range []struct {
		name   string
		settle func([]Verdict) []Result
		want   map[uint64]frame.SettleStatus
	}{
		{"done", func(vs []Verdict) []Result { return make([]Result, 0, len(vs)) },
			map[uint64]frame.SettleStatus{1: frame.SettleFailed, 2: frame.SettleFailed, 3: frame.SettleFailed}},
		{"failed", func([]Verdict) []Result {
			return []Result{{Status: ResultFailed, Fault: fault}, {Status: ResultDone}, {Status: ResultFailed}}
		}, map[uint64]frame.SettleStatus{1: frame.SettleFailed, 2: frame.SettleDone, 3: frame.SettleFailed}},
		{"not said", func(vs []Verdict) []Result { return make([]Result, len(vs)) },
			map[uint64]frame.SettleStatus{1: frame.SettleFailed, 2: frame.SettleFailed, 3: frame.SettleFailed}},
		{"stale and unsupported", func([]Verdict) []Result {
			return []Result{{Status: ResultStale}, {Status: ResultUnsupported}, {Status: ResultDone}, {Status: ResultDone}}
		}, map[uint64]frame.SettleStatus{1: frame.SettleStale, 2: frame.SettleUnsupported, 3: frame.SettleDone}},
		{"not of this package", func([]Verdict) []Result {
			return []Result{{Status: resultLater}, {Status: 99}, {Status: ResultDone}}
		}, map[uint64]frame.SettleStatus{1: frame.SettleFailed, 2: frame.SettleFailed, 3: frame.SettleDone}},
		{"panic", func([]Verdict) []Result { panic("boom") },
			map[uint64]frame.SettleStatus{1: frame.SettleFailed, 2: frame.SettleFailed, 3: frame.SettleFailed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			tr.settle = func(_ context.Context, _ *queue, vs []Verdict) []Result { return tc.settle(vs) }
			b := serve(t, tr).connect()
			tr.queue("q").fill(6, 1)
			st := b.subscribe("q")
			st.credit(3, 1<<20)
			st.got(3)
			st.settle(frame.VerdictRun{First: 1, Count: 3, Kind: core.VerdictAck, WantResult: true})
			if d := cmp.Diff(tc.want, st.results(3)); d != "" {
				t.Errorf("results (-want +got):\n%s", d)
			}
			st.got(6) // the credit is back, whatever the answer
			for _, r := range st.settled {
				if r.Status == frame.SettleFailed && r.Fault == nil {
					t.Errorf("FAILED without a fault")
				}
			}
		})
	}
}

// DONE is told only where it is wanted, everything else always.
func TestUnwantedResults(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	tr.queue("q").fill(3, 1)
	st := b.subscribe("q")
	st.credit(3, 1<<20)
	st.got(3)
	st.settle(
		frame.VerdictRun{First: 1, Kind: core.VerdictAck},
		frame.VerdictRun{First: 1, Kind: core.VerdictAck},
		frame.VerdictRun{First: 2, Kind: core.VerdictRequeue, Delay: -1},
		ack(3),
	)
	st.results(3)
	want := []frame.SettleResult{
		{First: 1, Count: 1, Status: frame.SettleStale},
		{First: 2, Count: 1, Status: frame.SettleUnsupported},
		{First: 3, Count: 1, Status: frame.SettleDone},
	}
	if d := cmp.Diff(want, st.settled, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Fault" }, cmp.Ignore())); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}

// A run over all ids there can be costs no more than the deliveries it meets.
func TestEndlessRuns(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	tr.queue("q").fill(3, 1)
	st := b.subscribe("q")
	st.credit(3, 1<<20)
	st.got(3)
	st.settle(
		frame.VerdictRun{First: 2, Count: math.MaxUint64, Kind: core.VerdictAck, WantResult: true},
		frame.VerdictRun{First: math.MaxUint64, Count: 5, Kind: core.VerdictAck},
		frame.VerdictRun{First: 0, Count: 2, Kind: core.VerdictAck, WantResult: true},
	)
	st.wait("results", func() bool { return len(st.settled) >= 5 })
	want := []frame.SettleResult{
		{First: 2, Count: 2, Status: frame.SettleDone},
		{First: 4, Count: math.MaxUint64 - 3, Status: frame.SettleStale},
		{First: math.MaxUint64, Count: 1, Status: frame.SettleStale},
		{First: 0, Count: 1, Status: frame.SettleStale},
		{First: 1, Count: 1, Status: frame.SettleDone},
	}
	if d := cmp.Diff(want, st.settled); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}

// releasing is a subscription that wants to know of releases.
type releasing struct {
	*queue
	log []string
}

func (r *releasing) Settle(_ context.Context, vs []Verdict) []Result {
	for _, v := range vs {
		r.log = append(r.log, fmt.Sprint("settle ", v.Handle))
	}
	return r.carryOut(vs)
}

func (r *releasing) Release(handles []any) {
	for _, h := range handles {
		r.log = append(r.log, fmt.Sprint("release ", h))
	}
}

func TestReleaserIsToldInOrder(t *testing.T) {
	tr := newQueueTransport(everything())
	var sub *releasing
	tr.wrap = func(s Subscription) Subscription {
		sub = &releasing{queue: s.(*queue)}
		return sub
	}
	b := serve(t, tr).connect()
	tr.queue("q").fill(6, 1)
	st := b.subscribe("q")
	st.credit(6, 1<<20)
	st.got(6)
	st.settle(
		ack(1),
		frame.VerdictRun{First: 2, Kind: core.VerdictRelease, WantResult: true},
		frame.VerdictRun{First: 3, Kind: core.VerdictRelease, WantResult: true},
		frame.VerdictRun{First: 4, Count: 2, Kind: core.VerdictAck, WantResult: true},
		frame.VerdictRun{First: 6, Kind: core.VerdictRequeue, Delay: -1},
	)
	st.results(6)
	st.finish()
	want := []string{"settle 1", "release 2", "release 3", "settle 4", "settle 5", "release 6"}
	if d := cmp.Diff(want, sub.log); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

// What was read before a seek is acked no more: the source gives it again.
func TestNoLateAckBehindASeek(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.Seeks = true
	var sub *lateAcking
	tr.wrap = func(s Subscription) Subscription {
		sub = &lateAcking{queue: s.(*queue)}
		return sub
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(4, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(4)
	q.say(Batch{Voids: []Void{{Handles: []any{2}, Returns: true}}})
	st.wait("the void", func() bool { return len(st.voids) == 1 })
	st.send(&frame.SubscribeRequest{Seek: &transportpb.Seek{Kind: transportpb.PositionKind_POSITION_KIND_BEGINNING}})
	st.wait("Sought", func() bool { return len(st.sought) == 1 })
	st.settle(frame.VerdictRun{First: 1, Count: 4, Kind: core.VerdictAck})
	st.results(4)
	q.say(Batch{Voids: []Void{{All: true}}})
	st.finish()
	if len(sub.late) > 0 {
		t.Errorf("late acks of %v, want none", sub.late)
	}
	if d := cmp.Diff([]frame.SettleResult{{First: 1, Count: 4, Status: frame.SettleStale}}, st.settled); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}

// lateAcking is a subscription whose source takes late acks of even handles.
type lateAcking struct {
	*queue
	late []any
}

func (l *lateAcking) AckLate(_ context.Context, handles []any) []Result {
	rs := make([]Result, len(handles))
	for i, h := range handles {
		l.late = append(l.late, h)
		rs[i] = Result{Status: ResultStale}
		if n, _ := h.(int); n%2 == 0 {
			rs[i] = Result{Status: ResultDone}
		}
	}
	return rs
}

func TestLateAcks(t *testing.T) {
	tr := newQueueTransport(everything())
	var sub *lateAcking
	tr.wrap = func(s Subscription) Subscription {
		sub = &lateAcking{queue: s.(*queue)}
		return sub
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(4, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(4)
	q.say(Batch{Voids: []Void{{All: true, Returns: true}}})
	st.wait("the void", func() bool { return len(st.voids) == 1 })
	st.settle(
		frame.VerdictRun{First: 1, Count: 2, Kind: core.VerdictAck},
		frame.VerdictRun{First: 3, Count: 2, Kind: core.VerdictRequeue},
		frame.VerdictRun{First: 2, Kind: core.VerdictAck},
		frame.VerdictRun{First: 4, Kind: core.VerdictAck},
	)
	st.results(6)
	st.finish()
	if d := cmp.Diff([]any{1, 2}, sub.late); d != "" {
		t.Errorf("late acks (-want +got):\n%s", d)
	}
	want := []frame.SettleResult{
		{First: 1, Count: 1, Status: frame.SettleStale},
		{First: 2, Count: 1, Status: frame.SettleDone},
		{First: 3, Count: 2, Status: frame.SettleStale},
		{First: 2, Count: 1, Status: frame.SettleStale},
		{First: 4, Count: 1, Status: frame.SettleStale},
	}
	if d := cmp.Diff(want, st.settled); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}
