// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func requeueNow() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueNow, Counts: core.CountNative, Unsettled: core.UnsettledOnDisconnect,
	}
}

// source is a subscription that notes what it is told, and when.
type source struct {
	queue
	begin time.Time
	fail  int // verdicts that fail first
	mu2   sync.Mutex
	log   []noted
	inUse int
}

type noted struct {
	Handle any
	Kind   core.VerdictKind
	Delay  time.Duration
	At     time.Duration
}

func newSource(caps ...core.Capabilities) *source {
	return &source{
		queue: queue{t: newQueueTransport(caps...), unsettled: make(map[any]Delivery), wake: make(chan struct{}, 1)},
		begin: time.Now(),
	}
}

func (s *source) Settle(_ context.Context, vs []Verdict) []Result {
	s.mu2.Lock()
	s.inUse++
	if s.inUse > 1 {
		panic("two calls of Settle at a time")
	}
	s.mu2.Unlock()
	time.Sleep(time.Millisecond) // so that two calls would meet; in a bubble
	s.mu2.Lock()
	defer s.mu2.Unlock()
	s.inUse--
	rs := make([]Result, len(vs))
	for i, v := range vs {
		s.log = append(s.log, noted{v.Handle, v.Kind, v.Delay, time.Since(s.begin).Truncate(10 * time.Millisecond)})
		rs[i] = Result{Status: ResultDone}
		if s.fail > 0 {
			s.fail--
			rs[i] = Result{Status: ResultFailed, Fault: newFault(core.FaultUnavailable, "not now")}
		}
	}
	return rs
}

func (s *source) notes() []noted {
	s.mu2.Lock()
	defer s.mu2.Unlock()
	return slices.Clone(s.log)
}

func requeue(h any, d time.Duration) Verdict {
	return Verdict{Handle: h, Kind: core.VerdictRequeue, Delay: d}
}

func TestHeldRequeuesInOrderOfDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(requeueNow())
		sub := Held(src, 0)
		if c := sub.Profiles()[0]; c.Requeue != core.RequeueDelayed || c.Valid() != nil {
			t.Errorf("profile %+v", c)
		}
		rs := sub.Settle(t.Context(), []Verdict{
			requeue("c", 3*time.Second), requeue("a", time.Second), {Handle: "x", Kind: core.VerdictAck},
			requeue("b", 2*time.Second), requeue("b2", 2*time.Second), {Handle: "y", Kind: core.VerdictRequeue},
		})
		for i, r := range rs {
			if r.Status != ResultDone {
				t.Errorf("result %d: %+v", i, r)
			}
		}
		time.Sleep(10 * time.Second)
		want := []noted{
			{"x", core.VerdictAck, 0, 0}, {"y", core.VerdictRequeue, 0, 0},
			{"a", core.VerdictRequeue, 0, time.Second}, {"b", core.VerdictRequeue, 0, 2 * time.Second},
			{"b2", core.VerdictRequeue, 0, 2 * time.Second}, {"c", core.VerdictRequeue, 0, 3 * time.Second},
		}
		if d := cmp.Diff(want, src.notes()); d != "" {
			t.Errorf("verdicts (-want +got):\n%s", d)
		}
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestHeldTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(requeueNow())
		src.fail = 2
		sub := Held(src, 0)
		sub.Profiles()
		sub.Settle(t.Context(), []Verdict{requeue("a", time.Second)})
		time.Sleep(10 * time.Second)
		if n := len(src.notes()); n != 3 {
			t.Errorf("%d tries, want 3: %v", n, src.notes())
		}
		src.say(Batch{CaughtUp: true})
		b, err := sub.Receive(t.Context(), Room{})
		if err != nil || len(b.Reports) != 2 || b.Reports[0].Fault.Code != core.FaultUnavailable {
			t.Errorf("reported %+v, %v", b, err)
		}
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestHeldDropsWhatIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(requeueNow())
		sub := Held(src, 0)
		sub.Profiles()
		for _, h := range []string{"a", "b", "c", "d"} {
			src.put(Delivery{Handle: h, Scope: map[string]string{"b": "s", "c": "s"}[h]})
		}
		if _, err := sub.Receive(t.Context(), Room{Messages: 9, Bytes: 9}); err != nil {
			t.Fatal(err)
		}
		sub.Settle(t.Context(), []Verdict{requeue("a", time.Second), requeue("b", time.Second), requeue("c", time.Second), requeue("d", time.Second)})
		src.say(Batch{Voids: []Void{{Scope: "s"}, {Handles: []any{"a"}}}})
		if _, err := sub.Receive(t.Context(), Room{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if d := cmp.Diff([]noted{{"d", core.VerdictRequeue, 0, time.Second}}, src.notes()); d != "" {
			t.Errorf("verdicts (-want +got):\n%s", d)
		}
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestHeldCloseHandsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(requeueNow())
		sub := Held(src, 0)
		sub.Profiles()
		sub.Settle(t.Context(), []Verdict{requeue("a", time.Second)})
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if n := src.notes(); len(n) != 0 || src.closes != 1 {
			t.Errorf("verdicts %v, closed %d times", n, src.closes)
		}
	})
}

// Beyond its bound a requeue is held, and its credit stays until others leave.
func TestHeldBound(t *testing.T) {
	tr := newQueueTransport(requeueNow())
	held := HeldCapabilities(requeueNow())
	tr.spec.Ceilings = []core.Capabilities{held}
	tr.inspect = func(_ Usage, in *Inspection) { in.Registrations[0].Profiles = []core.Capabilities{held} }
	tr.wrap = func(s Subscription) Subscription { return Held(s, 2) }
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(6, 1)
	st := b.subscribe("q")
	st.credit(4, 1<<20)
	st.got(4)
	st.settle(frame.VerdictRun{First: 1, Count: 4, Kind: core.VerdictRequeue, Delay: 150 * time.Millisecond, WantResult: true})
	done := map[uint64]frame.SettleStatus{1: frame.SettleDone, 2: frame.SettleDone}
	if d := cmp.Diff(done, st.results(2)); d != "" {
		t.Errorf("accepted at once (-want +got):\n%s", d)
	}
	st.settle(frame.VerdictRun{First: 4, Kind: core.VerdictAck}) // the first verdict won
	if got := st.results(3)[4]; got != frame.SettleStale {
		t.Errorf("second verdict on what waits: %d, want stale", got)
	}
	st.got(6) // two credits are back
	st.mu.Lock()
	if n := len(st.items); n != 6 {
		t.Errorf("%d deliveries, want 6: two verdicts are not accepted yet", n)
	}
	st.mu.Unlock()
	st.results(5)
	st.got(8) // all four have come back to a window that is open again
	st.finish()
}

// A verdict that was not accepted yet is stale when its delivery becomes void.
func TestHeldVoidBeforeItIsAccepted(t *testing.T) {
	tr := newQueueTransport(HeldCapabilities(requeueNow()))
	tr.offers = []core.Capabilities{requeueNow()}
	tr.wrap = func(s Subscription) Subscription { return Held(s, 1) }
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(2, 1)
	st := b.subscribe("q")
	st.credit(2, 1<<20)
	st.got(2)
	st.settle(frame.VerdictRun{First: 1, Count: 2, Kind: core.VerdictRequeue, Delay: time.Hour})
	eventually(t, "the verdicts to be held", func() bool {
		b.server.mu.Lock()
		x := b.server.subs[0]
		b.server.mu.Unlock()
		x.mu.Lock()
		defer x.mu.Unlock()
		e := x.ledger.Find(2)
		return e != nil && e.Later && x.ledger.Find(1) == nil
	})
	q.say(Batch{Voids: []Void{{Handles: []any{1, 2}, Returns: true}}})
	if d := cmp.Diff(map[uint64]frame.SettleStatus{2: frame.SettleStale}, st.results(1)); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if v := st.voids; len(v) != 1 || v[0].GetFirst() != 2 || v[0].GetCount() != 1 {
		t.Errorf("voids %v, want delivery 2: delivery 1 was settled", v)
	}
	st.finish()
}

// A profile that delays by itself is none for Held: the subscription does not
// open, under another wrapper as well, and is closed.
func TestHeldRefusesNativeDelays(t *testing.T) {
	native := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: time.Minute}
	now := requeueNow()
	hold := func(s Subscription) Subscription { return Held(s, 0) }
	for name, tt := range map[string]struct {
		inner []core.Capabilities
		wrap  func(s Subscription) Subscription
		want  string
	}{
		"by itself":        {[]core.Capabilities{native}, hold, "profiles[0].requeue"},
		"beside others":    {[]core.Capabilities{now, native}, hold, "profiles[1].requeue"},
		"announced as one": {[]core.Capabilities{HeldCapabilities(now)}, hold, "profiles[0].requeue"},
		"twice":            {[]core.Capabilities{now}, func(s Subscription) Subscription { return hold(hold(s)) }, "profiles[0].requeue"},
		"under another":    {[]core.Capabilities{native}, func(s Subscription) Subscription { return Cumulative(hold(s)) }, "profiles[0].requeue"},
		"over another":     {[]core.Capabilities{now, native}, func(s Subscription) Subscription { return hold(Cumulative(s)) }, "profiles[1].requeue"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newQueueTransport(append(tt.inner, HeldCapabilities(now))...)
			tr.offers, tr.wrap = tt.inner, tt.wrap
			f := firstFault(serve(t, tr))
			if f == nil {
				t.Fatal("it opens")
			}
			if f.Code != core.FaultInternal || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != tt.want || f.Diagnostics[0].Fix == "" {
				t.Errorf("refused with %+v, want a breach at %s", f, tt.want)
			}
			if q := tr.queue("q"); q.closes != 1 {
				t.Errorf("closed %d times, want 1", q.closes)
			}
		})
	}
}

// What cannot be handed back is left as it is.
func TestHeldKeepsWhatCannotBeHandedBack(t *testing.T) {
	none := core.Capabilities{Ack: core.AckSingle, Unsettled: core.UnsettledOnDisconnect}
	tr := newQueueTransport(HeldCapabilities(requeueNow()), none)
	tr.offers = []core.Capabilities{requeueNow(), none}
	tr.wrap = func(s Subscription) Subscription { return Held(s, 0) }
	b := serve(t, tr).connect()
	tr.queue("q").put(Delivery{Profile: 1})
	st := b.subscribe("q")
	st.credit(1, 1<<20)
	st.got(1)
	st.settle(frame.VerdictRun{First: 1, Kind: core.VerdictRequeue, Delay: time.Second})
	if d := cmp.Diff(map[uint64]frame.SettleStatus{1: frame.SettleUnsupported}, st.results(1)); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	st.finish()
}

// The powers of a wrapper are those of what it wraps.
func TestWrappersKeepPowers(t *testing.T) {
	src := newSource(requeueNow()) // a Seeker
	for name, sub := range map[string]Subscription{
		"held": Held(src, 0), "cumulative": Cumulative(src), "both": Held(Cumulative(src), 0),
	} {
		p := powersOf(sub)
		if p.seeker == nil {
			t.Errorf("%s cannot seek", name)
		}
		if p.late != nil || (p.releaser != nil) != (name != "held") || (p.later != nil) != (name != "cumulative") {
			t.Errorf("%s has %+v", name, p)
		}
	}
	if p := powersOf(Held(plainSubscription{src}, 0)); p.seeker != nil {
		t.Error("a wrapper of what cannot seek can")
	}
	late := Held(&lateAcking{queue: &src.queue}, 0)
	if powersOf(late).late == nil {
		t.Error("a wrapper hides late acks")
	}
}

// holder notes what it is told of holds.
type holder struct {
	*source
	held []any
}

func (h *holder) Hold(handles []any) { h.held = append(h.held, handles...) }

func TestHeldTellsHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &holder{source: newSource(requeueNow())}
		sub := Held(src, 0)
		sub.Profiles()
		sub.Settle(t.Context(), []Verdict{
			requeue("a", time.Second), {Handle: "x", Kind: core.VerdictAck}, requeue("y", 0), requeue("b", time.Minute),
		})
		sub.Settle(t.Context(), []Verdict{requeue("c", time.Second)})
		if d := cmp.Diff([]any{"a", "b", "c"}, src.held); d != "" {
			t.Errorf("told of holds (-want +got):\n%s", d)
		}
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
