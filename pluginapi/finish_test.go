// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"io"
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

// finishing notes as well what it is told of the end.
type finishing struct{ *told }

func (s *finishing) Finish(ctx context.Context, held []any) {
	_, limited := ctx.Deadline()
	s.note(fmt.Sprintf("finish %v %v", held, limited))
	if s.explode {
		panic("in the works")
	}
}

// halfClose half-closes a stream and waits for its end.
func (st *stream) halfClose() {
	st.tb.Helper()
	if err := st.s.CloseSend(); err != nil {
		st.tb.Fatal(err)
	}
	st.wait("end of stream", func() bool { return st.err != nil })
}

// An end in order is told, once, behind the last verdict; any other end is not.
func TestFinish(t *testing.T) {
	const finish = "finish [] true"
	settling := make(chan struct{}, 1)
	for name, c := range map[string]struct {
		explode bool
		stuck   string // the call that does not return
		end     func(b *bench, st *stream, q *queue)
		want    []string
	}{
		"stopped": {
			end: func(_ *bench, st *stream, _ *queue) {
				st.send(&frame.SubscribeRequest{Stop: true})
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.settle(ack(1))
				st.halfClose()
			},
			want: []string{"received", "stop", "settle", finish, "close"},
		},
		"half-closed": {
			end:  func(_ *bench, st *stream, _ *queue) { st.halfClose() },
			want: []string{"received", "stop", finish, "close"},
		},
		"a panic": {
			explode: true,
			end:     func(_ *bench, st *stream, _ *queue) { st.halfClose() },
			want:    []string{"received", "stop", finish, "close"},
		},
		"the end of the source": {
			end: func(_ *bench, st *stream, q *queue) {
				q.finish(io.EOF)
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.finish()
			},
			want: []string{"received", "stop", finish, "close"},
		},
		"half-closed, then the endpoint closes": {
			end: func(b *bench, st *stream, _ *queue) {
				st.halfClose()
				if _, err := b.link.Close(b.ctx, &transportpb.CloseRequest{}); err != nil {
					t.Error(err)
				}
			},
			want: []string{"received", "stop", finish, "close"},
		},
		"the endpoint closes under it": {
			end: func(b *bench, st *stream, _ *queue) {
				if _, err := b.link.Close(b.ctx, &transportpb.CloseRequest{}); err != nil {
					t.Error(err)
				}
				st.halfClose()
			},
			want: []string{"received", "stop", "close"},
		},
		"cancelled": {
			end:  func(_ *bench, st *stream, _ *queue) { st.cancel() },
			want: []string{"received", "stop", "close"},
		},
		"cancelled behind a stop": {
			end: func(_ *bench, st *stream, _ *queue) {
				st.send(&frame.SubscribeRequest{Stop: true})
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.cancel()
			},
			want: []string{"received", "stop", "close"},
		},
		"the host is gone": {
			end: func(b *bench, _ *stream, _ *queue) {
				gone, cancel := context.WithTimeout(context.Background(), soon)
				defer cancel()
				b.link.Break(nil)
				b.server.abandon(gone)
			},
			want: []string{"received", "stop", "close"},
		},
		"Settle does not return before the host is gone": {
			stuck: "settle",
			end: func(_ *bench, st *stream, _ *queue) {
				st.send(&frame.SubscribeRequest{Stop: true})
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.settle(ack(1))
				<-settling
				if err := st.s.CloseSend(); err != nil {
					t.Fatal(err)
				}
				st.cancel()
			},
			want: []string{"received", "stop", "settle", "close"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			var s *finishing
			tr.wrap = func(inner Subscription) Subscription {
				q, _ := inner.(*queue)
				s = &finishing{&told{queue: q, explode: c.explode}}
				return s
			}
			if c.stuck != "" {
				tr.settle = func(ctx context.Context, _ *queue, vs []Verdict) []Result {
					settling <- struct{}{}
					<-ctx.Done()
					return failed(len(vs), faultOf("settle", ctx.Err()))
				}
			}
			b := serve(t, tr).connect()
			q := tr.queue("q")
			q.fill(2, 1)
			st := b.subscribe("q")
			st.credit(10, 1<<20)
			st.got(2)
			c.end(b, st, q)
			eventually(t, "the subscription to be closed", func() bool {
				return strings.HasSuffix(strings.Join(s.noted(), " "), "close")
			})
			got := s.noted()
			if i := slices.Index(got, "settle"); i > 0 && got[i-1] == "received" { // beside StopIntake
				got[i], got[i+1] = got[i+1], got[i]
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

// A Receive that does not come back may hand out more: nobody knows what the
// host has.
func TestNoFinishWithAReceiveUnderWay(t *testing.T) {
	tr := newQueueTransport(everything())
	in, free, closed := make(chan struct{}, 1), make(chan struct{}), make(chan []string, 1)
	defer close(free)
	tr.receive = func(context.Context, *queue, Room) (Batch, error) {
		in <- struct{}{}
		<-free
		return Batch{}, io.EOF
	}
	tr.wrap = func(inner Subscription) Subscription {
		q, _ := inner.(*queue)
		return &closing{finishing{&told{queue: q}}, closed}
	}
	b := serveWithin(t, tr, 300*time.Millisecond).connect()
	st := b.subscribe("q")
	st.credit(1, 1)
	<-in
	st.finish()
	if d := cmp.Diff([]string{"close"}, <-closed); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

// closing tells the calls there were when it is closed.
type closing struct {
	finishing
	closed chan []string
}

func (s *closing) Close(ctx context.Context) error {
	err := s.finishing.Close(ctx)
	s.closed <- s.noted()
	return err
}

// ends is a source that is told of its end.
type ends struct {
	*source
	held [][]any
}

func (s *ends) Finish(_ context.Context, held []any) { s.held = append(s.held, held) }

// What Held has and what it was about to hand back is told at the end, and
// nothing else.
func TestHeldFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &ends{source: newSource(requeueNow())}
		sub := Held(src, 2)
		sub.Profiles()
		p := powersOf(sub)
		p.later.acceptLater(func([]uint64) {})
		sub.Settle(t.Context(), []Verdict{
			requeue("handed back", time.Second), requeue("held", time.Hour),
			{Handle: "acked", Kind: core.VerdictAck}, requeue("not accepted", time.Hour),
		})
		time.Sleep(2 * time.Second)
		h, _ := sub.(*held)
		h.turn <- struct{}{} // somebody is in Settle
		rs, _, _ := h.sort([]Verdict{requeue("due", time.Second)}, make([]Result, 1))
		if len(rs) > 0 {
			t.Fatalf("passed on: %v", rs)
		}
		wake(h.change)
		time.Sleep(2 * time.Second)
		p.finisher.Finish(t.Context(), []any{"of a wrapper"})
		<-h.turn
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, held := range src.held {
			slices.SortFunc(held, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		if d := cmp.Diff([][]any{{"due", "held", "not accepted", "of a wrapper"}}, src.held); d != "" {
			t.Errorf("told of (-want +got):\n%s", d)
		}
	})
}

// A hand-back that fails since it is cut off is one that is held.
func TestHeldFinishesInAHandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &ends{source: newSource(requeueNow())}
		src.fail = 1
		sub := Held(src, 0)
		sub.Profiles()
		sub.Settle(t.Context(), []Verdict{requeue("a", time.Second)})
		time.Sleep(time.Second) // its Settle takes a moment
		powersOf(sub).finisher.Finish(t.Context(), nil)
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([][]any{{"a"}}, src.held); d != "" {
			t.Errorf("told of (-want +got):\n%s", d)
		}
	})
}

// Where a hand-back does not return nothing is said: it may be done or not.
func TestHeldThatCannotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		src := &stubborn{ends{source: newSource(requeueNow())}, free}
		sub := Held(src, 0)
		sub.Profiles()
		sub.Settle(t.Context(), []Verdict{requeue("a", time.Second)})
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		powersOf(sub).finisher.Finish(ctx, nil)
		if len(src.held) > 0 {
			t.Errorf("told of %v", src.held)
		}
		close(free)
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// stubborn does not return from Settle before it is let go.
type stubborn struct {
	ends
	free chan struct{}
}

func (s *stubborn) Settle(_ context.Context, vs []Verdict) []Result {
	<-s.free
	return make([]Result, len(vs))
}
