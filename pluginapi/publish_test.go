// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func TestPublishInOrder(t *testing.T) {
	tr := newQueueTransport(everything())
	var got []string
	tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
		for i, m := range msgs {
			got = append(got, m.Message.Name+":"+string(m.Message.Payload))
			done(i, Receipt{Status: ReceiptConfirmed, Position: []byte("p"), Unrouted: i == 0})
		}
	}
	b := serve(t, tr).connect()
	p := b.publish()
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprintf("n:%d", i))
		p.send(to("n", fmt.Sprint(i)))
	}
	p.statuses(300)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if r := p.receipts[1][0]; !r.Unrouted || string(r.Position) != "p" {
		t.Errorf("receipt %+v", r)
	}
	if err := p.s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	p.wait("end", func() bool { return p.err != nil })
	if !errors.Is(p.err, errEOF) {
		t.Errorf("stream ended with %v", p.err)
	}
}

// Whatever a transport does with done, every message has one receipt, and none
// after Close is missing.
func TestReceiptsExactlyOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type call struct {
			i    int
			done func(int, Receipt)
		}
		var mu sync.Mutex
		var later []call
		frames := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 8).Draw(rt, "frames")
		plan := rapid.SliceOfN(rapid.IntRange(0, 5), 160, 160).Draw(rt, "plan")
		next := 0
		tr := newQueueTransport(everything())
		tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
			confirmed := Receipt{Status: ReceiptConfirmed}
			for i := range msgs {
				mu.Lock()
				what := plan[next]
				next++
				mu.Unlock()
				switch what {
				case 0:
					done(i, confirmed)
				case 1:
					done(i, confirmed)
					done(i, Receipt{Status: ReceiptRefused})
				case 2: // from another goroutine, later
					mu.Lock()
					later = append(later, call{i, done})
					mu.Unlock()
				case 3: // later and twice
					mu.Lock()
					later = append(later, call{i, done}, call{i, done})
					mu.Unlock()
				case 4: // never
				case 5:
					done(-1, confirmed)
					done(len(msgs), confirmed)
					done(i, Receipt{})
				}
			}
		}
		l, end := drive(t, tr)
		defer end()
		s, err := l.Publish(t.Context())
		must(rt, err)
		want := make(map[uint64]frame.ReceiptStatus)
		id := uint64(0)
		for _, n := range frames {
			f := frame.NewPublishes()
			for range n {
				want[id+1] = frame.ReceiptConfirmed
				if p := plan[id]; p == 4 || p == 5 {
					want[id+1] = frame.ReceiptUnknown
				}
				id++
				f.Items = append(f.Items, frame.Outgoing{ID: id, Message: core.Message{Name: "n"}})
			}
			must(rt, s.Send(f))
		}
		got := make(map[uint64]frame.ReceiptStatus)
		var rs []frame.Receipt
		read := func(until int) {
			for len(got) < until {
				rs, err = s.Recv(rs[:0])
				must(rt, err)
				for _, r := range rs {
					if _, twice := got[r.ID]; twice {
						rt.Fatalf("message %d has two receipts", r.ID)
					}
					got[r.ID] = r.Status
				}
			}
		}
		now, never := 0, 0
		for i := range id {
			switch plan[i] {
			case 0, 1, 5:
				now++
			case 4:
				never++
			}
		}
		read(now)
		eventually(t, "all messages to be handed over", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return next == int(id)
		})
		mu.Lock()
		order := rapid.Permutation(later).Draw(rt, "order")
		mu.Unlock()
		for _, c := range order {
			c.done(c.i, Receipt{Status: ReceiptConfirmed})
		}
		read(int(id) - never)
		closed := make(chan error, 1)
		go func() {
			_, err := l.Close(t.Context(), &transportpb.CloseRequest{})
			closed <- err
		}()
		read(int(id))
		must(rt, <-closed)
		for _, c := range order { // long after
			c.done(c.i, Receipt{Status: ReceiptRefused})
		}
		must(rt, s.CloseSend())
		if rs, err = s.Recv(rs[:0]); !errors.Is(err, errEOF) {
			rt.Fatalf("stream ended with %v and %v", err, rs)
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("receipts (-want +got):\n%s", d)
		}
	})
}

// What cannot go is refused before the transport sees it.
func TestRefusedBeforeTheTransport(t *testing.T) {
	type options struct {
		QoS int `json:"qos" min:"0" max:"2"`
	}
	tr := newQueueTransport(everything())
	tr.spec.Publish = SchemaOf[options]()
	tr.spec.Publishing.MaxDelay = time.Minute
	tr.inspect = func(u Usage, in *Inspection) {
		for i, d := range u.Destinations {
			if d.Name == "small" {
				in.Destinations[i].Publishing.MaxBytes = 10
				in.Destinations[i].Publishing.MaxHeaders = 1
				in.Destinations[i].Publishing.MaxDelay = 0
			}
		}
	}
	b := serve(t, tr)
	if _, err := b.link.Configure(b.ctx, &transportpb.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.link.Inspect(b.ctx, &transportpb.InspectRequest{Destinations: []*transportpb.Target{{Name: "small"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.link.Connect(b.ctx, &transportpb.ConnectRequest{}); err != nil {
		t.Fatal(err)
	}
	p := b.publish()
	for _, tc := range []struct {
		name string
		m    frame.Outgoing
		code core.FaultCode // 0 = goes
	}{
		{"fits", to("small", "1234567890"), 0},
		{"over the destination's bytes", to("small", "12345678901"), core.FaultTooLarge},
		{"headers count", frame.Outgoing{Message: core.Message{Name: "small", Headers: core.Headers{{Name: "abc", Value: []byte("12345678")}}}}, core.FaultTooLarge},
		{"too many headers", frame.Outgoing{Message: core.Message{Name: "small", Headers: core.Headers{{Name: "a"}, {Name: "b"}}}}, core.FaultTooLarge},
		{"another destination", to("large", "12345678901"), 0},
		{"a delay that it cannot", frame.Outgoing{Message: core.Message{Name: "small"}, DeliverAfter: 1}, core.FaultUnsupported},
		{"a delay that it can", frame.Outgoing{Message: core.Message{Name: "large"}, DeliverAfter: time.Minute - 1}, 0},
		{"a delay at the limit", frame.Outgoing{Message: core.Message{Name: "large"}, DeliverAfter: time.Minute}, core.FaultUnsupported},
		{"options", frame.Outgoing{Message: core.Message{Name: "large"}, Options: []byte(`{"qos":1}`)}, 0},
		{"an unknown option", frame.Outgoing{Message: core.Message{Name: "large"}, Options: []byte(`{"qso":1}`)}, core.FaultInvalid},
		{"an option out of range", frame.Outgoing{Message: core.Message{Name: "large"}, Options: []byte(`{"qos":3}`)}, core.FaultInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := p.send(tc.m)[0]
			p.wait("the receipt", func() bool { return len(p.receipts[id]) == 1 })
			r := p.receipts[id][0]
			switch {
			case tc.code == 0 && r.Status != frame.ReceiptConfirmed:
				t.Errorf("receipt %+v, want confirmed", r)
			case tc.code != 0 && (r.Status != frame.ReceiptRefused || r.Fault == nil || r.Fault.Code != tc.code):
				t.Errorf("receipt %+v, want refused with code %d", r, tc.code)
			}
		})
	}
}

func TestPublishPanics(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
		done(0, Receipt{Status: ReceiptConfirmed})
		if len(msgs) > 1 {
			panic("publish went wrong")
		}
	}
	b := serve(t, tr).connect()
	p := b.publish()
	p.send(to("n", "1"), to("n", "2"), to("n", "3"))
	p.send(to("n", "4"))
	want := map[uint64]frame.ReceiptStatus{
		1: frame.ReceiptConfirmed, 2: frame.ReceiptUnknown, 3: frame.ReceiptUnknown, 4: frame.ReceiptConfirmed,
	}
	if d := cmp.Diff(want, p.statuses(4)); d != "" {
		t.Errorf("receipts (-want +got):\n%s", d)
	}
}

// A transport that blocks holds up neither the reader nor a Close; what it never
// got is refused, what it has is unknown.
func TestPublishThatBlocks(t *testing.T) {
	tr := newQueueTransport(everything())
	entered, free := make(chan struct{}), make(chan struct{})
	tr.publish = func(context.Context, []Outgoing, func(int, Receipt)) {
		close(entered)
		<-free
	}
	b := serve(t, tr).connect()
	p := b.publish()
	p.send(to("n", "1"))
	<-entered
	p.send(to("n", "2"), to("n", "3"))
	closed := make(chan error, 1)
	go func() {
		_, err := b.link.Close(b.ctx, &transportpb.CloseRequest{Limit: int64(50 * time.Millisecond)})
		closed <- err
	}()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	p.send(to("n", "4"))
	want := map[uint64]frame.ReceiptStatus{
		1: frame.ReceiptUnknown, 2: frame.ReceiptRefused, 3: frame.ReceiptRefused, 4: frame.ReceiptRefused,
	}
	if d := cmp.Diff(want, p.statuses(4)); d != "" {
		t.Errorf("receipts (-want +got):\n%s", d)
	}
	close(free)
}

// A host without a window is refused at the SDK's bound, and told so.
func TestPublishBeyondTheBound(t *testing.T) {
	tr := newQueueTransport(everything())
	var calls []func()
	tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
		calls = append(calls, func() {
			for i := range msgs {
				done(i, Receipt{Status: ReceiptConfirmed})
			}
		})
	}
	b := serve(t, tr).connect()
	p := b.publish()
	batch := slices.Repeat([]frame.Outgoing{to("n", "")}, frame.MaxItems)
	for range maxMissing / frame.MaxItems {
		p.send(batch...)
	}
	id := p.send(to("n", "one more"))[0]
	p.wait("the receipt", func() bool { return len(p.receipts[id]) == 1 })
	if r := p.receipts[id][0]; r.Status != frame.ReceiptRefused || r.Fault.Code != core.FaultExhausted || !r.Fault.Transient {
		t.Errorf("receipt %+v", r)
	}
	eventually(t, "all frames to be handed over", func() bool {
		p := b.server.publish
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.handedOver()
	})
	for _, c := range calls {
		c()
	}
	p.statuses(maxMissing + 1)
}

// What was accepted is handed over although the host is gone.
func TestPublishesAreFlushedWhenTheHostIsGone(t *testing.T) {
	tr := newQueueTransport(everything())
	gate := make(chan struct{})
	first := true
	tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
		if first {
			first = false
			<-gate
		}
		for i := range msgs {
			tr.queue("n").put(Delivery{})
			done(i, Receipt{Status: ReceiptConfirmed})
		}
	}
	b := serve(t, tr).connect()
	p := b.publish()
	for range 5 {
		p.send(to("n", "x"))
	}
	eventually(t, "the frames to be read", func() bool {
		b.server.mu.Lock()
		pub := b.server.publish
		b.server.mu.Unlock()
		if pub == nil {
			return false
		}
		pub.mu.Lock()
		defer pub.mu.Unlock()
		return pub.missing == 5
	})
	b.link.Break(nil)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		b.server.abandon(ctx)
	}()
	close(gate)
	<-gone
	if n := len(tr.queue("n").ready); n != 5 {
		t.Errorf("%d messages arrived, want 5", n)
	}
}

func TestOnePublishStream(t *testing.T) {
	b := serve(t, newQueueTransport(everything())).connect()
	first := b.publish()
	first.send(to("n", "1"))
	first.statuses(1)
	second := b.publish()
	second.wait("the refusal", func() bool { return second.err != nil })
	if f := faultOf("", second.err); f.Code != core.FaultConflict {
		t.Errorf("second stream ended with %v", second.err)
	}
	if err := first.s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	first.wait("end", func() bool { return first.err != nil })
	third := b.publish()
	third.send(to("n", "1"))
	third.statuses(1)
}
