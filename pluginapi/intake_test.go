// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/frame"
)

// told is a subscription that notes when its calls come and return.
type told struct {
	*queue
	explode bool

	mu    sync.Mutex
	calls []string
}

func (s *told) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// noted returns the calls from the last one of Receive on.
func (s *told) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.calls) - 1; i > 0; i-- {
		if s.calls[i] == "received" {
			return append([]string(nil), s.calls[i:]...)
		}
	}
	return append([]string(nil), s.calls...)
}

func (s *told) Receive(ctx context.Context, room Room) (Batch, error) {
	defer s.note("received")
	return s.queue.Receive(ctx, room)
}

func (s *told) Settle(ctx context.Context, vs []Verdict) []Result {
	s.note("settle")
	return s.queue.Settle(ctx, vs)
}

func (s *told) StopIntake() {
	s.note("stop")
	if s.explode {
		panic("in the works")
	}
}

func (s *told) Close(ctx context.Context) error {
	s.note("close")
	return s.queue.Close(ctx)
}

// Whatever ends intake is told once, behind the last Receive.
func TestIntakeStopped(t *testing.T) {
	for name, c := range map[string]struct {
		explode bool
		end     func(b *bench, st *stream, q *queue)
		want    []string
	}{
		"stop": {
			end: func(_ *bench, st *stream, _ *queue) {
				st.send(&frame.SubscribeRequest{Stop: true})
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.settle(ack(1))
				st.results(1)
				st.finish()
			},
			want: []string{"received", "stop", "settle", "close"},
		},
		"a panic": {
			explode: true,
			end:     func(_ *bench, st *stream, _ *queue) { st.finish() },
			want:    []string{"received", "stop", "close"},
		},
		"half-closed": {
			end: func(_ *bench, st *stream, _ *queue) {
				if err := st.s.CloseSend(); err != nil {
					t.Fatal(err)
				}
				st.wait("end of stream", func() bool { return st.err != nil })
			},
			want: []string{"received", "stop", "close"},
		},
		"the host is gone": {
			end:  func(_ *bench, st *stream, _ *queue) { st.cancel() },
			want: []string{"received", "stop", "close"},
		},
		"the end of the source": {
			end: func(_ *bench, st *stream, q *queue) {
				q.finish(io.EOF)
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.finish()
			},
			want: []string{"received", "stop", "close"},
		},
		"a source that fails": {
			end: func(_ *bench, st *stream, q *queue) {
				q.finish(errors.New("gone"))
				st.wait("Ended", func() bool { return len(st.ended) == 1 })
				st.cancel()
			},
			want: []string{"received", "stop", "close"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			var s *told
			tr.wrap = func(inner Subscription) Subscription {
				q, _ := inner.(*queue)
				s = &told{queue: q, explode: c.explode}
				return s
			}
			b := serve(t, tr).connect()
			q := tr.queue("q")
			q.fill(1, 1)
			st := b.subscribe("q")
			st.credit(10, 1<<20)
			st.got(1)
			c.end(b, st, q)
			eventually(t, "the subscription to be closed", func() bool {
				return strings.HasSuffix(strings.Join(s.noted(), " "), "close")
			})
			if d := cmp.Diff(c.want, s.noted()); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}
