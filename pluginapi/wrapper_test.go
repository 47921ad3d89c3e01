// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// capable is a source that can do everything beside delivering.
type capable struct {
	*source
	released, late []any
	stops          int
	ended          []any
}

func (c *capable) Finish(_ context.Context, held []any) { c.ended = append(c.ended, held...) }

func (c *capable) StopIntake() { c.stops++ }

func (c *capable) Release(handles []any) { c.released = append(c.released, handles...) }

func (c *capable) AckLate(_ context.Context, handles []any) []Result {
	c.late = append(c.late, handles...)
	return make([]Result, len(handles))
}

func (c *capable) Seek(_ context.Context, to Position) error {
	if to.Kind == PositionEnd {
		return newFault(core.FaultUnsupported, "no end")
	}
	return nil
}

// What a wrapper is not about goes through to what it wraps.
func TestHeldPassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &capable{source: newSource(requeueNow())}
		sub := Held(src, 0)
		sub.Profiles()
		p := powersOf(sub)
		src.put(Delivery{Handle: "a", Scope: "s"}, Delivery{Handle: "b", Scope: "s"})
		if _, err := sub.Receive(t.Context(), Room{Messages: 9, Bytes: 9}); err != nil {
			t.Fatal(err)
		}
		p.releaser.Release([]any{"b"})
		if rs := p.late.AckLate(t.Context(), []any{"z"}); len(rs) != 1 {
			t.Errorf("late acks: %v", rs)
		}
		sub.Settle(t.Context(), []Verdict{requeue("a", time.Second)})
		if err := p.seeker.Seek(t.Context(), Position{Kind: PositionEnd}); err == nil {
			t.Error("a seek that fails does not")
		}
		if err := p.seeker.Seek(t.Context(), Position{Kind: PositionBeginning}); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if n := src.notes(); len(n) != 0 {
			t.Errorf("handed back after a seek: %v", n)
		}
		if d := cmp.Diff([][]any{{"b"}, {"z"}}, [][]any{src.released, src.late}); d != "" {
			t.Errorf("passed on (-want +got):\n%s", d)
		}
		if p.stopper.StopIntake(); src.stops != 1 {
			t.Errorf("told %d times that intake has stopped", src.stops)
		}
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		h, _ := sub.(*held)
		h.turn <- struct{}{} // somebody is in Settle
		if rs := sub.Settle(gone, []Verdict{{Kind: core.VerdictAck}}); rs[0].Status != ResultFailed {
			t.Errorf("settle with a context that has ended: %+v", rs)
		}
		if rs := h.AckLate(gone, []any{1}); rs[0].Status != ResultFailed {
			t.Errorf("late ack with a context that has ended: %+v", rs)
		}
	})
}

func TestCumulativePassesOn(t *testing.T) {
	src := &capable{source: newSource(cumulativeCaps())}
	sub := Cumulative(src)
	p := powersOf(sub)
	src.put(Delivery{Handle: 1}, Delivery{Handle: 2})
	if _, err := sub.Receive(t.Context(), Room{Messages: 9, Bytes: 9}); err != nil {
		t.Fatal(err)
	}
	if p.stopper.StopIntake(); src.stops != 1 {
		t.Errorf("told %d times that intake has stopped", src.stops)
	}
	if p.finisher.Finish(t.Context(), []any{3}); len(src.ended) != 1 {
		t.Errorf("told at the end of %v", src.ended)
	}
	p.releaser.Release([]any{1})
	if d := cmp.Diff([]any{1}, src.released); d != "" {
		t.Errorf("released (-want +got):\n%s", d)
	}
	if err := p.seeker.Seek(t.Context(), Position{Kind: PositionEnd}); err == nil {
		t.Error("a seek that fails does not")
	}
	if err := p.seeker.Seek(t.Context(), Position{Kind: PositionBeginning}); err != nil {
		t.Error(err)
	}
	src.put(Delivery{Handle: 3})
	if _, err := sub.Receive(t.Context(), Room{Messages: 9, Bytes: 9}); err != nil {
		t.Fatal(err)
	}
	rs := sub.Settle(t.Context(), []Verdict{{Handle: 2, Kind: core.VerdictAck}, {Handle: 3, Kind: core.VerdictAck}})
	if rs[0].Status != ResultStale || rs[1].Status != ResultDone || src.notes()[0].Handle != 3 {
		t.Errorf("after a seek: %+v, told %v", rs, src.notes())
	}
}

// A wrapper has no power that what it wraps lacks.
func TestWrappersOfAPlainSubscription(t *testing.T) {
	for name, s := range map[string]Subscription{
		"held": Held(newSource(requeueNow()), 0), "cumulative": Cumulative(newSource(cumulativeCaps())),
	} {
		if p := powersOf(s); p.stopper != nil || p.late != nil || p.finisher != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// What waits to be accepted is, in its order, as soon as another one leaves.
func TestHeldAcceptsAsOthersLeave(t *testing.T) {
	tr := newQueueTransport(HeldCapabilities(requeueNow()))
	tr.offers = []core.Capabilities{requeueNow()}
	tr.wrap = func(s Subscription) Subscription { return Held(s, 1) }
	b := serve(t, tr).connect()
	tr.queue("q").fill(3, 1)
	st := b.subscribe("q")
	st.credit(3, 1<<20)
	st.got(3)
	st.settle(
		frame.VerdictRun{First: 1, Kind: core.VerdictRequeue, Delay: 50 * time.Millisecond, WantResult: true},
		frame.VerdictRun{First: 2, Kind: core.VerdictRequeue, Delay: time.Hour, WantResult: true},
		frame.VerdictRun{First: 3, Kind: core.VerdictRequeue, Delay: time.Hour, WantResult: true},
	)
	want := map[uint64]frame.SettleStatus{1: frame.SettleDone, 2: frame.SettleDone}
	if d := cmp.Diff(want, st.results(2)); d != "" {
		t.Errorf("accepted (-want +got):\n%s", d)
	}
	st.got(4) // the first one again, on one of the credits that are back
	st.mu.Lock()
	if n := len(st.settled); n != 2 {
		t.Errorf("%d answers, want 2: there is room for one", n)
	}
	st.mu.Unlock()
	st.finish()
}

// A purpose or enum that is not known reads as none.
func TestUnknownPurposes(t *testing.T) {
	if got := known(99); got != PurposeUnspecified {
		t.Errorf("purpose %d", got)
	}
	for _, p := range []transportpb.Purpose{-1, 99} {
		if got := purpose(p); got != PurposeUnspecified {
			t.Errorf("purpose %d of %d", got, p)
		}
	}
}
