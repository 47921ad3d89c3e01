// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// slow is a subscription's stream that takes one message at a time, when it is
// let.
type slow struct {
	ctx  context.Context
	in   chan frame.SubscribeRequest
	sent chan string // what the SDK begins to send
	next chan struct{}
}

func (s *slow) Context() context.Context { return s.ctx }

func (s *slow) Send(m *frame.SubscribeResponse) error {
	var text string
	switch {
	case m.Started != nil:
		return nil
	case m.Deliveries != nil:
		items := m.Deliveries.Items
		text = fmt.Sprintf("%d-%d", items[0].ID, items[len(items)-1].ID)
		m.Deliveries.Release()
	case m.Void != nil:
		text = fmt.Sprintf("void %d", m.Void.GetFirst())
	case m.CaughtUp:
		text = "caught up"
	case m.Settled != nil:
		text = fmt.Sprintf("settled %d", m.Settled[0].First)
	case m.Ended != nil:
		text = "ended"
	}
	select {
	case s.sent <- text:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	select {
	case <-s.next:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *slow) Recv(m *frame.SubscribeRequest) error {
	select {
	case r, ok := <-s.in:
		if !ok {
			return io.EOF
		}
		*m = r
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// slowly opens subscription "q" on a slow stream with the given credit.
func slowly(t *testing.T, tr *queueTransport, credit frame.Credit) (s *slow, x *subscription, end func() error) {
	t.Helper()
	b := serve(t, tr).connect()
	ctx, cancel := context.WithCancel(t.Context())
	s = &slow{ctx: ctx, in: make(chan frame.SubscribeRequest, 4), sent: make(chan string), next: make(chan struct{})}
	s.in <- frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}}
	s.in <- frame.SubscribeRequest{Credit: &credit}
	over := make(chan error, 1)
	go func() { over <- b.server.Subscribe(s) }()
	eventually(t, "the subscription", func() bool {
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		x = b.server.subs[0]
		return x != nil
	})
	t.Cleanup(func() { cancel(); <-over; over <- nil })
	return s, x, func() error {
		err := <-over
		over <- nil
		return err
	}
}

// has waits until n deliveries have ids.
func (x *subscription) has(t *testing.T, n uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d deliveries", n), func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.ledger.Next() == n+1
	})
}

// lacks waits until a delivery is settled or void.
func (x *subscription) lacks(t *testing.T, id uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the end of delivery %d", id), func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.ledger.Find(id) == nil
	})
}

// one returns the deliveries that are ready one at a time.
func one(ctx context.Context, q *queue, room Room) (Batch, error) {
	room.Messages = min(room.Messages, 1)
	return q.take(ctx, room)
}

// What Receive returns one at a time while a frame is being sent goes in one
// frame, in order with all else that is said.
func TestLoneDeliveriesShareAFrame(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.receive = one
	q := tr.queue("q")
	q.put(Delivery{})
	s, x, end := slowly(t, tr, frame.Credit{Messages: 100, Bytes: 1 << 20})
	var got []string
	took := func() { got = append(got, <-s.sent) }
	step := func() { s.next <- struct{}{}; took() }
	took() // the first one waits for nobody
	q.fill(5, 1)
	x.has(t, 6)
	step()
	q.fill(2, 1)
	x.has(t, 8)
	q.say(Batch{Voids: []Void{{Handles: []any{7}}}})
	x.lacks(t, 7)
	step() // with 7, which is void already
	step()
	q.fill(1, 1)
	step()
	q.fill(2, 1)
	x.has(t, 11)
	s.in <- frame.SubscribeRequest{Settle: []frame.VerdictRun{ack(1)}}
	x.lacks(t, 1)
	step()
	step()
	q.fill(1, 1)
	step()
	q.fill(1, 1)
	x.has(t, 13)
	s.in <- frame.SubscribeRequest{Stop: true}
	step()
	step()
	want := []string{"1-1", "2-6", "7-8", "void 7", "9-9", "10-11", "settled 1", "12-12", "13-13", "ended"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sent (-want +got):\n%s", d)
	}
	close(s.in)
	s.next <- struct{}{}
	if err := end(); err != nil {
		t.Errorf("stream ended with %v", err)
	}
}

// A frame that waits for the stream grows to its bounds and not beyond.
func TestAnOpenFrameHasItsBounds(t *testing.T) {
	const much = 1 << 30
	for name, tt := range map[string]struct {
		messages, size int
		credit         frame.Credit
		last           uint64 // of the second frame
	}{
		"messages": {300, 1, frame.Credit{Messages: 1000, Bytes: much}, 257},
		"bytes":    {4, 50 << 10, frame.Credit{Messages: 1000, Bytes: much}, 3},
		"large":    {4, 200 << 10, frame.Credit{Messages: 1000, Bytes: much}, 2},
		"credit":   {12, 1, frame.Credit{Messages: 10, Bytes: much}, 10},
		"no more":  {5, 1, frame.Credit{Messages: 1000, Bytes: much}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newQueueTransport(everything())
			tr.receive = one
			q := tr.queue("q")
			q.put(Delivery{})
			s, x, _ := slowly(t, tr, tt.credit)
			got := []string{<-s.sent}
			q.fill(tt.messages, tt.size)
			x.has(t, tt.last)
			s.next <- struct{}{}
			got = append(got, <-s.sent)
			if d := cmp.Diff([]string{"1-1", fmt.Sprintf("2-%d", tt.last)}, got); d != "" {
				t.Errorf("sent (-want +got):\n%s", d)
			}
		})
	}
}
