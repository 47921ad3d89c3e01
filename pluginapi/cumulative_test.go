// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

func cumulativeCaps() core.Capabilities {
	return core.Capabilities{Ack: core.AckCumulative, Unsettled: core.UnsettledOnDisconnect, Order: core.OrderPerScope}
}

// The source is acked exactly up to the last delivery before the first that is
// not acked, per scope, whatever the order of acks and releases.
func TestCumulativeMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := &queue{t: newQueueTransport(cumulativeCaps()), unsettled: make(map[any]Delivery), wake: make(chan struct{}, 1)}
		acked := map[string]int{} // by scope: what the source was told
		sub := Cumulative(marking{src, acked}).(*cumulative)
		scopes := []string{"", "p"}
		sent := map[string]int{}
		open := map[any]int{} // handle to number
		state := map[string][]byte{"": nil, "p": nil}
		t.Repeat(map[string]func(*rapid.T){
			"deliver": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					s := rapid.SampledFrom(scopes).Draw(t, "scope")
					sent[s]++
					h := fmt.Sprint(s, ":", sent[s])
					open[h] = sent[s]
					state[s] = append(state[s], ' ')
					src.put(Delivery{Handle: h, Scope: s})
				}
				for len(src.ready) > 0 {
					if _, err := sub.Receive(context.Background(), Room{Messages: 3, Bytes: 3}); err != nil {
						t.Fatal(err)
					}
				}
			},
			"verdicts": func(t *rapid.T) {
				var vs []Verdict
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					if len(open) == 0 {
						break
					}
					h := pick(t, open)
					scope := h.(string)[:len(h.(string))-len(fmt.Sprint(":", open[h]))]
					if rapid.IntRange(0, 9).Draw(t, "release") == 0 {
						sub.Release([]any{h})
						state[scope][open[h]-1] = 'r'
					} else {
						vs = append(vs, Verdict{Handle: h, Kind: core.VerdictAck})
						state[scope][open[h]-1] = 'a'
					}
					delete(open, h)
				}
				for i, r := range sub.Settle(context.Background(), vs) {
					if r.Status != ResultDone {
						t.Fatalf("verdict %d: %+v", i, r)
					}
				}
			},
			"": func(t *rapid.T) {
				for _, s := range scopes {
					want := 0
					for want < len(state[s]) && state[s][want] == 'a' {
						want++
					}
					if acked[s] != want {
						t.Fatalf("scope %q is acked up to %d, want %d: %q", s, acked[s], want, state[s])
					}
				}
				nodes := 0
				for _, m := range sub.scopes {
					for n := m.head; n != nil; n = n.next {
						nodes++
					}
				}
				if nodes > 2*len(open)+2*len(scopes) {
					t.Fatalf("%d nodes for %d unsettled", nodes, len(open))
				}
			},
		})
	})
}

// pick draws one handle, the same for the same draws.
func pick(t *rapid.T, open map[any]int) any {
	var names []string
	for h := range open {
		names = append(names, h.(string))
	}
	return rapid.SampledFrom(slices.Sorted(slices.Values(names))).Draw(t, "handle")
}

// marking notes how far each scope is acked.
type marking struct {
	*queue
	acked map[string]int
}

func (m marking) Settle(_ context.Context, vs []Verdict) []Result {
	rs := make([]Result, len(vs))
	for i, v := range vs {
		scope, number, _ := strings.Cut(v.Handle.(string), ":")
		n, err := strconv.Atoi(number)
		if err != nil || n <= m.acked[scope] {
			panic("the mark does not move forward")
		}
		m.acked[scope] = n
		rs[i] = Result{Status: ResultDone}
	}
	return rs
}

func TestCumulativeThroughTheSDK(t *testing.T) {
	tr := newQueueTransport(cumulativeCaps())
	tr.wrap = Cumulative
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(6, 1)
	st := b.subscribe("q")
	st.credit(6, 1<<20)
	st.got(6)
	told := func() []any {
		q.mu.Lock()
		defer q.mu.Unlock()
		var out []any
		for _, v := range q.verdicts {
			out = append(out, v.Handle)
		}
		return out
	}
	st.settle(ack(3), ack(2))
	st.results(2)
	if d := cmp.Diff([]any(nil), told()); d != "" {
		t.Errorf("told too early:\n%s", d)
	}
	st.settle(ack(1))
	st.results(3)
	if d := cmp.Diff([]any{3}, told()); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	st.settle(
		frame.VerdictRun{First: 5, Kind: core.VerdictRelease, WantResult: true},
		ack(6), ack(4),
	)
	st.results(6)
	if d := cmp.Diff([]any{3, 4}, told()); d != "" {
		t.Errorf("told past a pin (-want +got):\n%s", d)
	}
	q.say(Batch{Voids: []Void{{All: true, Returns: true}}, CaughtUp: true})
	st.wait("caught up", func() bool { return st.caughtUp == 1 })
	q.fill(1, 1)
	st.got(7)
	st.settle(ack(7))
	st.results(7)
	if d := cmp.Diff([]any{3, 4, 7}, told()); d != "" {
		t.Errorf("told after a void (-want +got):\n%s", d)
	}
	st.finish()
}

// A mark that the source does not take fails the verdicts that it stands for.
func TestCumulativeAckFails(t *testing.T) {
	src := newSource(cumulativeCaps())
	sub := Cumulative(src)
	src.put(Delivery{Handle: 1}, Delivery{Handle: 2}, Delivery{Handle: 3}, Delivery{Handle: 4, Scope: "o"})
	if _, err := sub.Receive(t.Context(), Room{Messages: 9, Bytes: 9}); err != nil {
		t.Fatal(err)
	}
	src.fail = 1
	rs := sub.Settle(t.Context(), []Verdict{
		{Handle: 1, Kind: core.VerdictAck}, {Handle: 3, Kind: core.VerdictAck}, {Handle: 4, Kind: core.VerdictAck},
		{Handle: 9, Kind: core.VerdictAck},
	})
	want := []ResultStatus{ResultFailed, ResultDone, ResultDone, ResultStale}
	for i, r := range rs {
		if r.Status != want[i] {
			t.Errorf("result %d: %d, want %d", i, r.Status, want[i])
		}
	}
	if rs := sub.Settle(t.Context(), []Verdict{{Handle: 2, Kind: core.VerdictAck}}); rs[0].Status != ResultDone {
		t.Errorf("the next mark: %+v", rs[0])
	}
	last := src.notes()[len(src.notes())-1]
	if last.Handle != 3 {
		t.Errorf("acked up to %v, want 3", last.Handle)
	}
}

// A single void that comes back pins the mark; one that is gone lets it pass.
func TestCumulativeSingleVoids(t *testing.T) {
	for _, returns := range []bool{true, false} {
		src := newSource(cumulativeCaps())
		sub := Cumulative(src)
		src.put(Delivery{Handle: 1}, Delivery{Handle: 2}, Delivery{Handle: 3})
		if _, err := sub.Receive(t.Context(), Room{Messages: 9, Bytes: 9}); err != nil {
			t.Fatal(err)
		}
		src.say(Batch{Voids: []Void{{Handles: []any{2}, Returns: returns}}})
		if _, err := sub.Receive(t.Context(), Room{}); err != nil {
			t.Fatal(err)
		}
		sub.Settle(t.Context(), []Verdict{{Handle: 1, Kind: core.VerdictAck}, {Handle: 3, Kind: core.VerdictAck}})
		want := any(3)
		if returns {
			want = 1
		}
		notes := src.notes()
		if got := notes[len(notes)-1].Handle; got != want {
			t.Errorf("returns %v: acked up to %v, want %v", returns, got, want)
		}
	}
}
