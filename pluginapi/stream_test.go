// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func TestStopDuringABlockedReceive(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(2, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(2)
	st.send(&frame.SubscribeRequest{Stop: true})
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	if f := st.ended[0].GetFault(); f != nil {
		t.Errorf("ended with %v", f)
	}
	q.fill(1, 1) // nobody takes it
	st.settle(ack(1), ack(2))
	if d := cmp.Diff(map[uint64]frame.SettleStatus{1: frame.SettleDone, 2: frame.SettleDone}, st.results(2)); d != "" {
		t.Errorf("verdicts after the stop (-want +got):\n%s", d)
	}
	st.finish()
	if q.closes != 1 || len(q.ready) != 1 {
		t.Errorf("closed %d times with %d ready, want once with 1", q.closes, len(q.ready))
	}
}

// What Receive returned when it was stopped goes out as far as there is credit.
func TestStopKeepsWhatWasReceived(t *testing.T) {
	tr := newQueueTransport(everything())
	entered := make(chan struct{}, 1)
	tr.receive = func(ctx context.Context, _ *queue, room Room) (Batch, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return Batch{Deliveries: []Delivery{{Handle: 1, Attempt: 1}}}, ctx.Err()
	}
	b := serve(t, tr).connect()
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	<-entered
	st.send(&frame.SubscribeRequest{Stop: true})
	st.got(1)
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	st.settle(ack(1))
	st.results(1)
	st.finish()
}

// The last verdicts of a stream are carried out and answered before its end,
// also without a Stop.
func TestHalfCloseCarriesOutWhatIsQueued(t *testing.T) {
	tr := newQueueTransport(everything())
	gate := make(chan struct{})
	tr.settle = func(_ context.Context, q *queue, vs []Verdict) []Result {
		<-gate
		return q.carryOut(vs)
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(3)
	st.settle(ack(1))
	st.settle(ack(2))
	st.settle(ack(3))
	if err := st.s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	close(gate)
	st.wait("end of stream", func() bool { return st.err != nil })
	if !errors.Is(st.err, io.EOF) {
		t.Errorf("stream ended with %v", st.err)
	}
	if n := len(st.results(3)); n != 3 || q.left() != 0 {
		t.Errorf("%d answers and %d unsettled, want 3 and 0", n, q.left())
	}
}

// A cancelled stream is a host that is gone: verdicts that wait are not carried
// out, what is unsettled stays so, the subscription is closed.
func TestCancelledStreamLeavesDeliveriesUnsettled(t *testing.T) {
	tr := newQueueTransport(everything())
	in := make(chan struct{})
	tr.settle = func(ctx context.Context, q *queue, vs []Verdict) []Result {
		in <- struct{}{}
		<-ctx.Done()
		return make([]Result, len(vs))
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(3)
	st.settle(ack(1))
	<-in
	st.settle(ack(2), ack(3))
	st.cancel()
	eventually(t, "the subscription to be closed", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.closes == 1
	})
	if n := q.left(); n != 3 {
		t.Errorf("%d unsettled, want 3", n)
	}
	eventually(t, "the registration to be free", func() bool {
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		return len(b.server.subs) == 0
	})
	st = b.subscribe("q")
	st.finish()
}

func TestEndsOfReceive(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want *core.Fault
	}{
		{"end", io.EOF, nil},
		{"wrapped end", fmt.Errorf("input: %w", io.EOF), nil},
		{"fault", &core.Fault{Code: core.FaultDenied, Message: "no"}, &core.Fault{Code: core.FaultDenied, Message: "no"}},
		{"fault without a code", &core.Fault{Message: "no"}, &core.Fault{Code: core.FaultInternal, Message: "no"}},
		{"error", errors.New("broken"), &core.Fault{Code: core.FaultInternal, Message: "receive: broken"}},
		{"timeout", context.DeadlineExceeded, &core.Fault{
			Code: core.FaultTimeout, Message: "receive: context deadline exceeded", Transient: true,
		}},
		{"cancelled by nobody", context.Canceled, &core.Fault{
			Code: core.FaultCanceled, Message: "receive: context canceled", Transient: true,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			b := serve(t, tr).connect()
			q := tr.queue("q")
			q.fill(5, 1)
			q.finish(tc.err)
			st := b.subscribe("q")
			st.credit(2, 1<<20) // the end waits for credit like the deliveries before it
			st.got(2)
			st.settle(frame.VerdictRun{First: 1, Count: 2, Kind: core.VerdictAck})
			st.got(4)
			st.settle(frame.VerdictRun{First: 3, Count: 2, Kind: core.VerdictAck})
			st.got(5)
			st.wait("Ended", func() bool { return len(st.ended) == 1 })
			if d := cmp.Diff(tc.want, convert.ToFault(st.ended[0].GetFault())); d != "" {
				t.Errorf("fault (-want +got):\n%s", d)
			}
			st.settle(ack(5)) // verdicts are taken until the half-close
			st.results(1)
			st.finish()
			if n := len(st.ended); n != 1 {
				t.Errorf("ended %d times", n)
			}
		})
	}
}

// A panic of the author's code ends what it belongs to, not the process.
func TestAuthorPanics(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.receive = func(ctx context.Context, q *queue, room Room) (Batch, error) {
		if q.name == "bad" {
			panic("receive went wrong")
		}
		return q.take(ctx, room)
	}
	b := serve(t, tr).connect()
	tr.queue("good").fill(1, 1)
	good := b.open(&transportpb.Registration{Id: 1, Name: "good"})
	good.credit(1, 1<<20)
	bad := b.open(&transportpb.Registration{Id: 2, Name: "bad"})
	bad.credit(1, 1<<20)
	bad.wait("Ended", func() bool { return len(bad.ended) == 1 })
	if f := bad.ended[0].GetFault(); f.GetCode() != transportpb.FaultCode_FAULT_CODE_INTERNAL {
		t.Errorf("ended with %v", f)
	}
	bad.finish()
	good.got(1)
	good.settle(ack(1))
	good.results(1)
	good.finish()
}

// A transport that ignores its context does not hold up a stop.
func TestReceiveThatNeverReturns(t *testing.T) {
	tr := newQueueTransport(everything())
	entered, free := make(chan struct{}), make(chan struct{})
	tr.receive = func(context.Context, *queue, Room) (Batch, error) {
		close(entered)
		<-free
		return Batch{Deliveries: []Delivery{{Handle: 1, Attempt: 1}}}, nil
	}
	b := serveWithin(t, tr, 300*time.Millisecond).connect()
	st := b.subscribe("q")
	st.credit(1, 1<<20)
	<-entered
	st.send(&frame.SubscribeRequest{Stop: true})
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	if f := st.ended[0].GetFault(); f.GetCode() != transportpb.FaultCode_FAULT_CODE_TIMEOUT {
		t.Errorf("ended with %v", f)
	}
	close(free) // it returns after all, with a delivery
	st.finish()
	if n := len(st.items); n != 0 {
		t.Errorf("%d deliveries after the end", n)
	}
}

func TestCaughtUpComesBehindWhatWaitsForCredit(t *testing.T) {
	tr := newQueueTransport(everything())
	first := true
	tr.receive = func(ctx context.Context, q *queue, room Room) (Batch, error) {
		if first {
			first = false
			return Batch{
				Deliveries: []Delivery{{Handle: 1, Attempt: 1}, {Handle: 2, Attempt: 1}, {Handle: 3, Attempt: 1}}, CaughtUp: true,
				Reports: []Report{{Fault: newFault(core.FaultInvalid, "line 7"), Position: "line 7"}},
			}, nil
		}
		return q.take(ctx, room)
	}
	b := serve(t, tr).connect()
	st := b.subscribe("q")
	st.credit(2, 1<<20)
	st.got(2)
	st.settle(ack(1))
	st.got(3)
	st.wait("caught up", func() bool { return st.caughtUp == 1 })
	want := []string{"started", "report", "deliveries", "deliveries", "caught up"}
	if d := cmp.Diff(want, st.order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	st.finish()
}

// Rounds of subscribe and close leave nothing behind.
func TestSubscribeAndCloseRounds(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	for i := range 200 {
		s, err := b.link.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		st := &stream{tb: t, s: s, changed: make(chan struct{}, 1)}
		st.send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}})
		done := make(chan struct{})
		go func() { defer close(done); st.read() }()
		q.fill(2, 1)
		st.credit(2, 1<<20)
		st.got(2)
		st.settle(ack(1), ack(2))
		st.results(2)
		if i%2 == 0 {
			st.finish()
		} else {
			if err := s.CloseSend(); err != nil {
				t.Fatal(err)
			}
			st.wait("end of stream", func() bool { return st.err != nil })
		}
		<-done
	}
	wait, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := b.link.Wait(wait); err != nil {
		t.Errorf("calls still run: %v", err)
	}
	if q.closes != 200 || q.open != 0 || q.left() != 0 {
		t.Errorf("closed %d times, %d open, %d unsettled", q.closes, q.open, q.left())
	}
}

// Two subscriptions do not wait for each other.
func TestSlowSubscriptionHoldsUpNoOther(t *testing.T) {
	tr := newQueueTransport(everything())
	gate := make(chan struct{})
	tr.settle = func(_ context.Context, q *queue, vs []Verdict) []Result {
		if q.name == "slow" {
			<-gate
		}
		return q.carryOut(vs)
	}
	b := serve(t, tr).connect()
	tr.queue("slow").fill(1, 1)
	tr.queue("fast").fill(50, 1)
	slow := b.open(&transportpb.Registration{Id: 1, Name: "slow"})
	slow.credit(1, 1<<20)
	slow.got(1)
	slow.settle(ack(1))
	fast := b.open(&transportpb.Registration{Id: 2, Name: "fast"})
	fast.credit(1, 1<<20)
	for id := range uint64(50) {
		fast.got(int(id) + 1)
		fast.settle(ack(id + 1))
	}
	fast.results(50)
	fast.finish()
	close(gate)
	slow.results(1)
	slow.finish()
}

// A stop does not wait for the grace of a used up window.
func TestStopUnderAUsedUpWindow(t *testing.T) {
	synctest.Test(t, testStopUnderAUsedUpWindow)
}

func testStopUnderAUsedUpWindow(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	tr.queue("q").fill(2, 1)
	st := b.subscribe("q")
	st.credit(1, 1<<20)
	st.got(1)
	begin := time.Now()
	st.finish()
	if d := time.Since(begin); d > 0 {
		t.Errorf("stop took %v", d)
	}
}
