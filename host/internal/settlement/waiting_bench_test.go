// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// answering is a quickStream that answers every verdict.
type answering struct {
	quickStream
	answers chan []frame.SettleResult
}

func (s *answering) Send(r *frame.SubscribeRequest) error {
	rs := make([]frame.SettleResult, 0, len(r.Settle))
	for _, run := range r.Settle {
		rs = append(rs, frame.SettleResult{First: run.First, Count: run.Count, Status: frame.SettleDone})
	}
	if len(rs) > 0 {
		s.answers <- rs
	}
	return nil
}

func (s *answering) Recv(r *frame.SubscribeResponse) error {
	select {
	case r.Settled = <-s.answers:
		return nil
	case r.Deliveries = <-s.frames:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// filled is a lane that has nothing but waiting copies.
type filled struct {
	stream  *answering
	lane    *Lane
	waiting *Waiting
	sent    int
	empty   int64 // heap
}

func newFilled(o LaneOptions) *filled {
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	f := &filled{
		stream: &answering{
			quickStream: quickStream{ctx: ctx, frames: make(chan *frame.Deliveries)},
			answers:     make(chan []frame.SettleResult, 1024),
		},
		waiting: NewWaiting(WaitingOptions{Logger: log, Messages: math.MaxInt, Bytes: math.MaxInt64}),
	}
	o.Endpoint, o.Subscription, o.Logger, o.Waiting = "in", "jobs", log, f.waiting
	o.Outboxes = func(string) *Outbox { return nil }
	o.RetryTo = open("jobs", stored)
	f.lane = NewLane(o)
	f.lane.Attach(Attachment{Stream: f.stream, Cancel: cancel, Profiles: []core.Capabilities{kindA}, Number: 1})
	f.lane.Grant()
	f.empty = heapInUse()
	return f
}

// fill adds n copies with payloads of the given size and one header.
func (f *filled) fill(n, size int) {
	payload := make([]byte, size)
	for end := f.sent + n; f.sent < end; {
		n := max(min(end-f.sent, frame.MaxItems, 4<<20/max(size, 1)), 1)
		d := frame.DeliveriesOf(n)
		for i := range n {
			d.Items = append(d.Items, frame.Delivery{ID: uint64(f.sent + i + 1), Message: core.Message{
				Name: "jobs", Payload: payload, Headers: core.Headers{{Name: "x-tenant", Value: []byte("acme")}},
			}})
		}
		f.stream.frames <- d
		f.sent += n
		for f.waiting.Len() < f.sent {
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// each is what a copy takes and what it is counted as.
func (f *filled) each() (heap, counted float64) {
	n := float64(f.sent)
	f.waiting.mu.Lock()
	counted = float64(f.waiting.room.bytes) / n
	f.waiting.mu.Unlock()
	return float64(heapInUse()-f.empty) / n, counted
}

func (f *filled) close(tb testing.TB) {
	if err := f.lane.Close(context.Background()); err != nil {
		tb.Error(err)
	}
	f.waiting.Close()
}

// What a waiting copy of 100 B with one header takes in memory, and how long it
// takes to lay it by:
//
//	go test -run xxx -bench WaitingCopies -benchtime 1000000x ./host/internal/settlement
func BenchmarkWaitingCopies(b *testing.B) {
	f := newFilled(LaneOptions{Handle: func(context.Context, *Delivery) Said { return Said{Outcome: later(time.Hour)} }})
	b.ResetTimer()
	f.fill(b.N, 100)
	b.StopTimer()
	heap, counted := f.each()
	b.ReportMetric(heap, "heap-B/copy")
	b.ReportMetric(counted, "counted-B/copy")
	f.close(b)
}

// What a waiting copy is counted as is what it takes, or somewhat more.
func TestWaitingIsCountedHonestly(t *testing.T) { // D3
	if raceEnabled || testing.Short() {
		t.Skip("it measures memory")
	}
	told := func(*Finished) {}
	keep := func(*Said, *core.Plan) bool { return true }
	n := 0
	tests := map[string]struct {
		o     LaneOptions
		said  Said
		sizes []int
	}{
		"plain":       {said: Said{}, sizes: []int{0, 100, 1000, 4000, 5000, 100_000}},
		"told":        {o: LaneOptions{Finished: told}, said: Said{Err: context.Canceled, Stack: strings.Repeat("s", 2000)}, sizes: []int{100}},
		"kept":        {o: LaneOptions{Finished: told, Keep: keep}, sizes: []int{100, 1000, 100_000}},
		"own targets": {o: LaneOptions{Policy: core.Policy{RetryTo: true}}, sizes: []int{100}},
	}
	for name, tt := range tests {
		for _, size := range tt.sizes {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				o := tt.o
				o.Handle = func(context.Context, *Delivery) Said {
					said := tt.said
					said.Outcome = later(time.Hour)
					said.Stack = strings.Clone(said.Stack)
					return said
				}
				if o.Policy.RetryTo {
					o.RetryFunc = func(*Delivery) (core.Route, error) {
						n++
						return open(fmt.Sprint("topic", n), stored), nil
					}
				}
				f := newFilled(o)
				f.fill(min(20_000, 64<<20/max(size, 1)), size)
				heap, counted := f.each()
				t.Logf("heap %.0f, counted %.0f", heap, counted)
				if heap > counted {
					t.Errorf("a copy takes %.0f bytes and is counted as %.0f", heap, counted)
				}
				if counted > 2*heap+waitingOverhead {
					t.Errorf("a copy takes %.0f bytes only and is counted as %.0f", heap, counted)
				}
				f.close(t)
				if r := f.waiting.room; r != (room{}) || len(f.waiting.scenes) != 0 {
					t.Errorf("room is still taken: %+v, %d scenes", r, len(f.waiting.scenes))
				}
			})
		}
	}
}
