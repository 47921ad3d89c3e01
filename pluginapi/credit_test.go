// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// What a host has outstanding before a delivery comes is below its window in
// both counts, whatever the sizes, the window, and the order of its verdicts.
func TestCreditIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		window := frame.Credit{
			Messages: rapid.Uint64Range(1, 40).Draw(rt, "messages"),
			Bytes:    rapid.Uint64Range(1, 4000).Draw(rt, "bytes"),
		}
		sizes := rapid.SliceOfN(rapid.IntRange(0, 900), 1, 150).Draw(rt, "sizes")
		tr := newQueueTransport(everything())
		overfill := rapid.Bool().Draw(rt, "overfill")
		if overfill { // a transport that does not look at its room
			tr.receive = func(ctx context.Context, q *queue, _ Room) (Batch, error) {
				return q.take(ctx, Room{Messages: 30, Bytes: 1 << 30})
			}
		}
		l, end := drive(t, tr)
		defer end()
		s, err := l.Subscribe(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		must(rt, s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}}))
		q := tr.queue("q")
		for _, n := range sizes {
			q.put(Delivery{Message: core.Message{Payload: make([]byte, n)}})
		}
		must(rt, s.Send(&frame.SubscribeRequest{Credit: &window}))

		var held []frame.Delivery
		bytes, last := uint64(0), uint64(0)
		for seen := 0; seen < len(sizes); {
			var r frame.SubscribeResponse
			must(rt, s.Recv(&r))
			if r.Deliveries == nil {
				continue
			}
			for _, d := range r.Deliveries.Items {
				if uint64(len(held)) >= window.Messages || bytes >= window.Bytes {
					rt.Fatalf("delivery %d came with %d messages and %d bytes outstanding, window %+v", d.ID, len(held), bytes, window)
				}
				if last++; d.ID != last {
					rt.Fatalf("delivery has id %d, want %d", d.ID, last)
				}
				held = append(held, d)
				bytes += uint64(len(d.Message.Payload))
				seen++
			}
			// Settle some of what is held, in any order and by any verdict: at least
			// as much as it takes for more to come.
			n := rapid.IntRange(0, len(held)).Draw(rt, "settle")
			for ; len(held) > 0 && (n > 0 || uint64(len(held)) >= window.Messages || bytes >= window.Bytes); n-- {
				i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				kind := rapid.SampledFrom([]core.VerdictKind{core.VerdictAck, core.VerdictReject, core.VerdictRelease}).Draw(rt, "kind")
				must(rt, s.Send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{{First: held[i].ID, Kind: kind}}}))
				bytes -= uint64(len(held[i].Message.Payload))
				held = slices.Delete(held, i, i+1)
			}
			r.Deliveries.Release()
		}
	})
}

func must(tb rapid.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("stream: %v", err)
	}
}

func TestZeroWindowPauses(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	st := b.subscribe("q")
	st.credit(4, 1<<20)
	q.fill(2, 1)
	st.got(2)
	st.credit(0, 0)
	// The pause is in force once a Receive without room has been asked.
	eventually(t, "a Receive without room", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.rooms[len(q.rooms)-1].Messages == 0
	})
	q.fill(3, 1)
	q.say(Batch{Reports: []Report{{Fault: newFault(core.FaultUnavailable, "hiccup"), Position: "line 3"}}})
	st.wait("the report", func() bool { return len(st.reports) == 1 })
	if n := len(st.got(0)); n != 2 {
		t.Errorf("%d deliveries under a window of 0, want the 2 from before", n)
	}
	st.credit(5, 1<<20)
	st.got(5)
	st.finish()
}

func TestShrunkWindowCallsReceiveBack(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	st := b.subscribe("q")
	st.credit(100, 1<<20)
	room := func(n int) func() bool {
		return func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return len(q.rooms) > 0 && q.rooms[len(q.rooms)-1].Messages == n
		}
	}
	eventually(t, "a Receive with room 100", room(100))
	st.credit(3, 1<<20)
	eventually(t, "a Receive with room 3", room(3))
	q.fill(10, 1)
	st.got(3)
	eventually(t, "a Receive without room", room(0))
	if n := len(st.got(3)); n != 3 {
		t.Errorf("%d deliveries, want 3", n)
	}
	st.settle(frame.VerdictRun{First: 1, Count: 3, Kind: core.VerdictAck})
	st.got(6)
	st.finish()
}

func TestVoidsComeThroughAUsedUpWindow(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	st := b.subscribe("q")
	st.credit(2, 1<<20)
	q.fill(3, 1)
	st.got(2)
	q.say(Batch{Voids: []Void{{Handles: []any{1}, Returns: true}}})
	st.wait("the void", func() bool { return len(st.voids) == 1 })
	st.got(3) // its credit is back
	st.finish()
}

func TestReleaseReturnsCredit(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(1, 1<<20)
	for id := range uint64(3) {
		st.got(int(id) + 1)
		st.settle(frame.VerdictRun{First: id + 1, Kind: core.VerdictRelease})
	}
	st.settle(ack(2))
	if d := cmp.Diff(map[uint64]frame.SettleStatus{2: frame.SettleStale}, st.results(1)); d != "" {
		t.Errorf("verdict after a release (-want +got):\n%s", d)
	}
	st.finish()
	if len(q.verdicts) != 0 {
		t.Errorf("the source was told %v", q.verdicts)
	}
}

// One delivery that is held does not keep back those behind it.
func TestOneHeldDeliveryStarvesNobody(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	st := b.subscribe("q")
	st.credit(4, 1<<20)
	const n = 3000
	go q.fill(n, 1)
	settled := 1
	for settled < n {
		items := st.got(settled + 1)
		for _, d := range items[settled:] {
			st.settle(frame.VerdictRun{First: d.ID, Kind: core.VerdictAck})
			settled++
		}
	}
	st.settle(ack(1))
	if d := cmp.Diff(map[uint64]frame.SettleStatus{1: frame.SettleDone}, st.results(1)); d != "" {
		t.Errorf("the held one (-want +got):\n%s", d)
	}
	st.finish()
}

func TestFrames(t *testing.T) {
	kib := func(n int) int { return n << 10 }
	for _, tc := range []struct {
		name  string
		sizes []int
		want  []int
	}{
		{"ends at 256 messages", slices.Repeat([]int{1}, 600), []int{256, 256, 88}},
		{"ends at 128 KiB", []int{kib(50), kib(50), kib(50), kib(50), kib(50)}, []int{2, 2, 1}},
		{"one larger message alone", []int{10, kib(300), 10, 10}, []int{1, 1, 2}},
		{"several larger ones", []int{kib(200), kib(200)}, []int{1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			b := serve(t, tr).connect()
			q := tr.queue("q")
			for _, n := range tc.sizes {
				q.put(Delivery{Message: core.Message{Payload: make([]byte, n)}})
			}
			st := b.subscribe("q")
			st.credit(1000, 1<<30)
			st.got(len(tc.sizes))
			if d := cmp.Diff(tc.want, st.frames); d != "" {
				t.Errorf("frames (-want +got):\n%s", d)
			}
		})
	}
}

// L-06: a message over the limit is one error on that message; the stream stays.
func TestTooLargeAndUnreadableMessages(t *testing.T) {
	big := make([]byte, frame.MaxPayload-5)
	for _, tc := range []struct {
		name string
		m    core.Message
		code core.FaultCode
	}{
		{"at the limit", core.Message{Name: "n", Payload: big, Headers: core.Headers{{Name: "ab", Value: []byte("cde")}}}, 0},
		{"over the limit", core.Message{Name: "n", Payload: big, Headers: core.Headers{{Name: "abc", Value: []byte("def")}}}, core.FaultTooLarge},
		{"too many headers", core.Message{Name: "n", Headers: make(core.Headers, frame.MaxHeaders+1)}, core.FaultTooLarge},
		{"name is not UTF-8", core.Message{Name: "n\xff", Payload: []byte("x")}, core.FaultInvalid},
		{"header name is not UTF-8", core.Message{Name: "n", Headers: core.Headers{{Name: "h\xff"}}}, core.FaultInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			b := serve(t, tr).connect()
			q := tr.queue("q")
			q.put(Delivery{Message: tc.m})
			q.put(Delivery{Message: core.Message{Name: "next"}})
			st := b.subscribe("q")
			st.credit(10, 1<<40)
			items := st.got(2)
			got := core.FaultCode(0)
			if f := items[0].Undecodable; f != nil {
				got = f.Code
			}
			if got != tc.code {
				t.Errorf("undecodable with code %d, want %d: %v", got, tc.code, items[0].Undecodable)
			}
			if items[1].Message.Name != "next" || items[1].Undecodable != nil {
				t.Errorf("the next delivery is %+v", items[1])
			}
		})
	}
}

// A broken delivery ends the subscription behind those before it.
func TestDeliveryThatBreaksTheContract(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    Delivery
		path string
	}{
		{"profile", Delivery{Profile: 1}, "deliveries.profile"},
		{"scope", Delivery{Scope: "\xff"}, "deliveries.scope"},
		{"carry", Delivery{Carry: make([]byte, maxAside+1)}, "deliveries"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			b := serve(t, tr).connect()
			q := tr.queue("q")
			q.put(Delivery{}, tc.d, Delivery{})
			st := b.subscribe("q")
			st.credit(10, 1<<20)
			st.wait("Ended", func() bool { return len(st.ended) == 1 })
			f := st.ended[0].GetFault()
			if len(f.GetDiagnostics()) != 1 || f.GetDiagnostics()[0].GetPath() != tc.path {
				t.Errorf("ended with %v, want a diagnostic for %s", f, tc.path)
			}
			if n := len(st.got(1)); n != 1 {
				t.Errorf("%d deliveries, want the one before", n)
			}
			st.settle(ack(1))
			st.results(1)
			st.finish()
		})
	}
}

// A source that says that it counts, and does not, ends its subscription: no cap
// would ever apply.
func TestCountsNeedAttempts(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.uncounted = true
	q.put(Delivery{Attempt: 1}, Delivery{}, Delivery{Attempt: 1})
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	want := []core.Diagnostic{{
		Path: "deliveries.attempt", Message: "is 0 and profile 0 says that the source counts",
		Fix: "set Attempt, the first delivery is 1, or leave Counts at CountNone",
	}}
	if d := cmp.Diff(want, convert.ToFault(st.ended[0].GetFault()).Diagnostics); d != "" {
		t.Errorf("ended with (-want +got):\n%s", d)
	}
	if n := len(st.got(1)); n != 1 {
		t.Errorf("%d deliveries, want the one before", n)
	}
	st.settle(ack(1))
	st.results(1)
	st.finish()
}

// A source that does not count has no attempts.
func TestAttemptsNeedACount(t *testing.T) {
	c := everything()
	c.Counts = core.CountNone
	tr := newQueueTransport(everything(), c)
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.put(Delivery{Attempt: 7}, Delivery{Attempt: 7, Profile: 1})
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	items := st.got(2)
	if items[0].Attempt != 7 || items[1].Attempt != 0 {
		t.Errorf("attempts %d and %d, want 7 and 0", items[0].Attempt, items[1].Attempt)
	}
}

// A transport that returns at once without a thing is slowed down.
func TestReceiveThatDoesNotBlock(t *testing.T) {
	tr := newQueueTransport(everything())
	calls := 0
	tr.receive = func(context.Context, *queue, Room) (Batch, error) {
		calls++
		if calls == maxDull+3 {
			return Batch{}, errEOF
		}
		return Batch{}, nil
	}
	b := serve(t, tr).connect()
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	st.finish()
	if st.ended[0].GetFault() != nil {
		t.Errorf("ended with %v", st.ended[0])
	}
}
