// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func TestVoidsBecomeRuns(t *testing.T) {
	for _, tc := range []struct {
		name string
		void Void
		want []*transportpb.Void
	}{
		{"all", Void{All: true}, []*transportpb.Void{{First: 1, Count: 2}, {First: 4, Count: 3}}},
		{"scope", Void{Scope: "a", Returns: true}, []*transportpb.Void{
			{First: 1, Count: 1, Returns: true}, {First: 5, Count: 1, Returns: true},
		}},
		{"no scope", Void{}, nil},
		{"handles", Void{Handles: []any{6, 1, 5, 3, 99}, Returns: true}, []*transportpb.Void{
			{First: 1, Count: 1, Returns: true}, {First: 5, Count: 2, Returns: true},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			b := serve(t, tr).connect()
			q := tr.queue("q")
			for i := range 6 {
				q.put(Delivery{Scope: []string{"a", "b"}[i%2]})
			}
			st := b.subscribe("q")
			st.credit(6, 1<<20)
			st.got(6)
			st.settle(ack(3))
			st.results(1)
			// A void, a delivery behind it, and what came of both in order.
			q.say(Batch{Voids: []Void{tc.void}})
			q.put(Delivery{Scope: "c"})
			st.got(7)
			if d := cmp.Diff(tc.want, st.voids, protocmp.Transform()); d != "" {
				t.Errorf("voids (-want +got):\n%s", d)
			}
			voided := uint64(0)
			for _, v := range st.voids {
				voided += v.GetCount()
			}
			// Their credit is back: what is left of the window fills up again.
			q.fill(20, 1)
			st.credit(7, 1<<20)
			st.got(8 + int(voided))
			st.finish()
		})
	}
}

func TestVerdictsAfterAVoidAreStale(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(3, 1<<20)
	st.got(3)
	q.say(Batch{Voids: []Void{{Handles: []any{2}}}})
	st.wait("the void", func() bool { return len(st.voids) == 1 })
	st.settle(frame.VerdictRun{First: 1, Count: 3, Kind: core.VerdictAck, WantResult: true})
	want := map[uint64]frame.SettleStatus{1: frame.SettleDone, 2: frame.SettleStale, 3: frame.SettleDone}
	if d := cmp.Diff(want, st.results(3)); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if len(q.verdicts) != 2 {
		t.Errorf("the transport saw %v", q.verdicts)
	}
}

// A verdict that is on its way when its delivery becomes void is answered behind
// the void with what the transport says, DONE included, and its credit returns
// once.
func TestVoidWhileAVerdictIsInFlight(t *testing.T) {
	for _, status := range []ResultStatus{ResultDone, ResultStale, ResultFailed} {
		tr := newQueueTransport(everything())
		in, out := make(chan struct{}), make(chan struct{})
		tr.settle = func(_ context.Context, _ *queue, vs []Verdict) []Result {
			in <- struct{}{}
			<-out
			return []Result{{Status: status}}[:len(vs)]
		}
		b := serve(t, tr).connect()
		q := tr.queue("q")
		q.fill(1, 1)
		st := b.subscribe("q")
		st.credit(2, 1<<20)
		st.got(1)
		st.settle(frame.VerdictRun{First: 1, Kind: core.VerdictAck})
		<-in
		q.say(Batch{Voids: []Void{{All: true, Returns: true}}})
		st.wait("the void", func() bool { return len(st.voids) == 1 })
		close(out)
		st.results(1)
		want := map[ResultStatus]frame.SettleStatus{
			ResultDone: frame.SettleDone, ResultStale: frame.SettleStale, ResultFailed: frame.SettleFailed,
		}[status]
		if got := st.settled[0].Status; got != want {
			t.Errorf("result %d, want %d", got, want)
		}
		q.fill(5, 1)
		st.got(3) // exactly the window
		st.settle(frame.VerdictRun{First: 2, Count: 2, Kind: core.VerdictRelease})
		st.got(5)
		st.mu.Lock()
		if n := len(st.items); n != 5 {
			t.Errorf("%d deliveries under a window of 2 with 3 ended, want 5", n)
		}
		st.mu.Unlock()
		st.finish()
	}
}

// Deliveries that wait in the plugin for credit are dropped when they are void.
func TestVoidOfWhatWaitsForCredit(t *testing.T) {
	tr := newQueueTransport(everything())
	sent := false
	tr.receive = func(ctx context.Context, q *queue, room Room) (Batch, error) {
		if sent {
			return q.take(ctx, room)
		}
		sent = true
		return Batch{Deliveries: []Delivery{
			{Handle: "a", Attempt: 1, Scope: "x"}, {Handle: "b", Attempt: 1, Scope: "x"}, {Handle: "c", Attempt: 1, Scope: "y"},
		}}, nil
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	st := b.subscribe("q")
	st.credit(1, 1<<20)
	st.got(1)
	st.credit(0, 0)
	q.say(Batch{Voids: []Void{{Scope: "x"}}, CaughtUp: true})
	st.credit(1, 1<<20)
	st.settle(ack(1))
	items := st.got(2)
	if items[1].Scope != "y" && items[1].Scope != "x" {
		t.Errorf("second delivery has scope %q", items[1].Scope)
	}
	st.finish()
}

func TestVoidByHandlesThatCannotBeCompared(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	q.mu.Lock()
	q.events.Voids = []Void{{Handles: []any{[]byte("slice")}}}
	q.mu.Unlock()
	q.signal()
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	if f := st.ended[0].GetFault(); len(f.GetDiagnostics()) != 1 || f.GetDiagnostics()[0].GetPath() != "voids.handles" {
		t.Errorf("ended with %v", f)
	}
}

func TestSeek(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.Seeks = true
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(3, 1<<20)
	st.got(3)
	seek := func(kind transportpb.PositionKind) *transportpb.Sought {
		n := len(st.sought)
		st.send(&frame.SubscribeRequest{Seek: &transportpb.Seek{Kind: kind, Value: []byte("v")}})
		st.wait("Sought", func() bool { return len(st.sought) > n })
		return st.sought[n]
	}
	if s := seek(transportpb.PositionKind_POSITION_KIND_UNSPECIFIED); s.GetFault().GetCode() != transportpb.FaultCode_FAULT_CODE_INVALID {
		t.Errorf("seek to no kind: %v", s)
	}
	if s := seek(transportpb.PositionKind_POSITION_KIND_TIME); s.GetFault().GetCode() != transportpb.FaultCode_FAULT_CODE_UNSUPPORTED {
		t.Errorf("seek that the transport refuses: %v", s)
	}
	if len(st.voids) != 0 {
		t.Errorf("a failed seek voids %v", st.voids)
	}
	if s := seek(transportpb.PositionKind_POSITION_KIND_BEGINNING); s.GetFault() != nil || s.GetNext() != 4 {
		t.Errorf("seek to the beginning: %v", s)
	}
	if d := cmp.Diff([]*transportpb.Void{{First: 1, Count: 3, Returns: true}}, st.voids, protocmp.Transform()); d != "" {
		t.Errorf("voids (-want +got):\n%s", d)
	}
	q.fill(1, 1)
	st.got(4)
	if s := seek(transportpb.PositionKind_POSITION_KIND_EXACT); s.GetNext() != 5 || st.voids[1].GetReturns() {
		t.Errorf("seek to a position: %v, void %v", s, st.voids[1])
	}
	if d := cmp.Diff([]Position{{Kind: PositionTime, Time: time.Unix(0, 0), Value: []byte("v")}, {Kind: PositionBeginning, Value: []byte("v")}, {Kind: PositionExact, Value: []byte("v")}}, q.sought); d != "" {
		t.Errorf("positions (-want +got):\n%s", d)
	}
	q.finish(errEOF)
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	if s := seek(transportpb.PositionKind_POSITION_KIND_BEGINNING); s.GetFault().GetCode() != transportpb.FaultCode_FAULT_CODE_CLOSED {
		t.Errorf("seek after the end: %v", s)
	}
	st.finish()
}

func TestSeekWithoutSeeker(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	st := b.subscribe("q")
	st.send(&frame.SubscribeRequest{Seek: &transportpb.Seek{Kind: transportpb.PositionKind_POSITION_KIND_END}})
	st.wait("Sought", func() bool { return len(st.sought) == 1 })
	if f := st.sought[0].GetFault(); f.GetCode() != transportpb.FaultCode_FAULT_CODE_UNSUPPORTED {
		t.Errorf("answered %v", f)
	}
	st.finish()
}

// slowToSettle is a subscription whose Settle and Seek say when they begin and go on
// when they are told to.
type slowToSettle struct {
	*queue
	settles, seeks chan chan struct{}
}

func (s *slowToSettle) Settle(ctx context.Context, vs []Verdict) []Result {
	pass := make(chan struct{})
	s.settles <- pass
	<-pass
	return s.queue.Settle(ctx, vs)
}

func (s *slowToSettle) Seek(ctx context.Context, to Position) error {
	pass := make(chan struct{})
	s.seeks <- pass
	<-pass
	return s.queue.Seek(ctx, to)
}

// A seek is carried out behind the verdicts that came before it, and those that come
// while it runs are about deliveries that are void by then.
func TestSeekAndVerdictsTakeTurns(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.Seeks = true
	slow := &slowToSettle{settles: make(chan chan struct{}), seeks: make(chan chan struct{})}
	tr.wrap = func(s Subscription) Subscription {
		slow.queue = s.(*queue)
		return slow
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(3)
	st.settle(frame.VerdictRun{First: 1, Count: 1, Kind: core.VerdictAck, WantResult: true})
	settling := <-slow.settles
	st.settle(frame.VerdictRun{First: 2, Count: 1, Kind: core.VerdictAck, WantResult: true})
	st.send(&frame.SubscribeRequest{Seek: &transportpb.Seek{Kind: transportpb.PositionKind_POSITION_KIND_BEGINNING}})
	close(settling)
	close(<-slow.settles) // the one that was asked for before the seek
	seeking := <-slow.seeks
	st.settle(frame.VerdictRun{First: 3, Count: 1, Kind: core.VerdictAck, WantResult: true})
	close(seeking)
	// Nobody takes a further Settle: one that were called would never return.
	st.wait("Sought", func() bool { return len(st.sought) == 1 })
	st.results(3)
	want := []frame.SettleResult{
		{First: 1, Count: 1, Status: frame.SettleDone}, {First: 2, Count: 1, Status: frame.SettleDone}, {First: 3, Count: 1, Status: frame.SettleStale},
	}
	if d := cmp.Diff(want, st.settled); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	q.say(Batch{Voids: []Void{{All: true}}})
	st.finish()
}
