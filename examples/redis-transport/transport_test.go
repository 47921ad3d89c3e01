// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestMessagesComeAsTheyWent(t *testing.T) {
	s := startServer(t)
	c := s.connect("")
	r := s.subscribe(c, "s", "{}")
	sent := []core.Message{
		{Name: "s", Payload: []byte("text")},
		{Name: "s", Payload: []byte{}},
		{Name: "s", Payload: []byte("\x00\r\n\xff"), Headers: core.Headers{
			{Name: "a", Value: []byte("1")}, {Name: "A", Value: []byte{0, 0xff}}, {Name: "a", Value: []byte("2")},
			{Name: "empty", Value: []byte{}}, {Name: "größe", Value: []byte("日本")}, {Name: "p", Value: []byte("no payload")},
			{Name: "h:x: y", Value: []byte(" blank ")},
		}},
		{Name: "s", Payload: []byte(strings.Repeat("x", 5<<20))},
	}
	for i, got := range publish(c, sent...) {
		if got.Status != pluginapi.ReceiptConfirmed || len(got.Position) == 0 {
			t.Errorf("receipt %d: %+v", i, got)
		}
	}
	for i, want := range sent {
		d := r.next()
		if !bytes.Equal(d.Message.Payload, want.Payload) {
			t.Errorf("message %d: payload of %d bytes is not the one of %d", i, len(d.Message.Payload), len(want.Payload))
		}
		if diff := cmp.Diff(want.Headers, d.Message.Headers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("message %d: headers (-want +got):\n%s", i, diff)
		}
		if d.Attempt != 1 || d.Undecodable != nil || time.Since(d.PublishedAt).Abs() > limit {
			t.Errorf("message %d: attempt %d, undecodable %v, published %v", i, d.Attempt, d.Undecodable, d.PublishedAt)
		}
		r.ack(d, pluginapi.ResultDone)
		r.ack(d, pluginapi.ResultStale)
	}
}

func TestEntriesOfOthersAreUndecodable(t *testing.T) {
	s := startServer(t)
	r := s.subscribe(s.connect(""), "s", "{}")
	for _, fields := range [][]string{{"city", "Kiel"}, {"h:a", "1"}, {"p", "x", "p", "y"}, {"p", "x", "h:\xff", "y"}} {
		if err := s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "s", ID: "5-*", Values: fields}).Err(); err != nil {
			t.Fatal(err)
		}
		d := r.next()
		if d.Undecodable == nil || !d.PublishedAt.IsZero() {
			t.Errorf("%q: undecodable %v, published %v", fields, d.Undecodable, d.PublishedAt)
		}
		r.ack(d, pluginapi.ResultDone)
	}
}

func TestRequeueCountsAndDelays(t *testing.T) {
	s := startServer(t)
	c := s.connect(`, "hold": "10m"`)
	r := s.subscribe(c, "s", "{}")
	publish(c, text("s", "x"))
	d := r.next()
	for i, delay := range []time.Duration{0, 300 * time.Millisecond, 0, time.Millisecond} {
		from := time.Now()
		r.settle(d, pluginapi.Verdict{Kind: core.VerdictRequeue, Delay: delay}, pluginapi.ResultDone)
		again := r.next()
		if took := time.Since(from); took < delay || took > delay+limit {
			t.Errorf("requeue after %v came after %v", delay, took)
		}
		if want := uint32(i + 2); again.Attempt != want {
			t.Errorf("attempt %d, want %d", again.Attempt, want)
		}
		r.settle(d, pluginapi.Verdict{Kind: core.VerdictRequeue}, pluginapi.ResultStale)
		d = again
	}
	if len(r.void) > 0 {
		t.Errorf("voids %v, want none: all had a verdict", r.void)
	}
	r.ack(d, pluginapi.ResultDone)
	r.none(200 * time.Millisecond)
}

func TestRequeueWakesAReceiveThatWaits(t *testing.T) {
	s := startServer(t)
	c := s.connect(`, "hold": "10m"`)
	r := s.subscribe(c, "s", "{}")
	publish(c, text("s", "x"))
	d := r.next()
	const rounds = 50
	late := 0 // as by a machine that is busy
	for range rounds {
		got := make(chan pluginapi.Delivery, 1)
		from := time.Now()
		go func() { got <- r.next() }()
		r.settle(d, pluginapi.Verdict{Kind: core.VerdictRequeue}, pluginapi.ResultDone)
		d = <-got
		if took := time.Since(from); took > 500*time.Millisecond {
			late++
		}
	}
	if late > rounds/2 {
		t.Errorf("%d of %d came after 500ms: nothing wakes the Receive", late, rounds)
	}
}

// A delivery whose hold is over goes to somebody else; whoever acks first, acks.
func TestHoldEndsElsewhere(t *testing.T) {
	s := startServer(t)
	const more = `, "hold": "400ms"`
	a, b := s.connect(more), s.connect(more)
	ra, rb := s.subscribe(a, "s", "{}"), s.subscribe(b, "s", "{}")
	publish(a, text("s", "x"))
	first := ra.next()
	from := time.Now()
	second := rb.next()
	if took := time.Since(from); took < 390*time.Millisecond || took > limit {
		t.Errorf("it was claimed after %v, want the hold of 400ms and a poll", took)
	}
	if second.Attempt != 2 {
		t.Errorf("attempt %d, want 2", second.Attempt)
	}
	s.until("the void", func() bool { ra.receive(100*time.Millisecond, pluginapi.Room{}); return len(ra.void) > 0 })
	if diff := cmp.Diff([]pluginapi.Void{{Handles: []any{first.Handle}, Returns: true}}, ra.void, cmp.Comparer(same)); diff != "" {
		t.Errorf("voids (-want +got):\n%s", diff)
	}
	ra.settle(first, pluginapi.Verdict{Kind: core.VerdictRequeue}, pluginapi.ResultStale)
	ra.settle(first, pluginapi.Verdict{Kind: core.VerdictExtend, Hold: time.Millisecond}, pluginapi.ResultStale)
	if got := ra.AckLate(t.Context(), []any{first.Handle}); got[0].Status != pluginapi.ResultDone {
		t.Errorf("late ack: %+v", got)
	}
	rb.ack(second, pluginapi.ResultStale)
	rb.none(600 * time.Millisecond)
}

func same(a, b *lease) bool { return a == b }

// The same within one process: the new delivery comes with the void of the old
// one, and is void itself once the old one is acked.
func TestHoldEndsHere(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.connect(`, "hold": "3s"`)
	r := s.subscribe(c, "s", "{}")
	publish(c, text("s", "x"))
	first := r.next()
	second := r.next()
	if len(r.void) != 1 || r.void[0].Handles[0] != first.Handle || !r.void[0].Returns || second.Attempt != 2 {
		t.Fatalf("voids %+v and attempt %d, want the first delivery's and 2", r.void, second.Attempt)
	}
	r.void = nil
	r.AckLate(t.Context(), []any{first.Handle})
	if err := r.receive(limit, pluginapi.Room{}); err != nil {
		t.Fatal(err)
	}
	if len(r.void) != 1 || r.void[0].Handles[0] != second.Handle || r.void[0].Returns {
		t.Errorf("voids %+v, want the second delivery's, for good", r.void)
	}
	r.none(500 * time.Millisecond)
}

func TestExtendProlongs(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := s.connect(`, "hold": "4s"`)
	r := s.subscribe(c, "s", "{}")
	publish(c, text("s", "x"))
	d := r.next()
	for range 3 {
		r.none(1700 * time.Millisecond)
		r.settle(d, pluginapi.Verdict{Kind: core.VerdictExtend, Hold: 3900 * time.Millisecond}, pluginapi.ResultDone)
	}
	if again := r.next(); again.Attempt != 2 {
		t.Errorf("attempt %d, want 2", again.Attempt)
	}
}

// A Receive that is called back loses nothing, and what it took counts once.
func TestReceiveIsCalledBackAtOnce(t *testing.T) {
	s := startServer(t)
	c := s.connect("")
	r := s.subscribe(c, "s", "{}")
	const calls = 20
	late := 0 // as by a machine that is busy
	for range calls {
		from := time.Now()
		r.receive(5*time.Millisecond, wide)
		if time.Since(from) > 200*time.Millisecond {
			late++
		}
	}
	if late > calls/2 {
		t.Errorf("%d of %d calls of 5 ms took 200 ms and more", late, calls)
	}
	const n = 200
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range n {
			publish(c, text("s", fmt.Sprint(i)))
		}
	}()
	s.until("all has come", func() bool { r.receive(time.Millisecond, wide); return len(r.held) >= n })
	<-published
	for i, d := range r.held {
		if string(d.Message.Payload) != fmt.Sprint(i) || d.Attempt != 1 {
			t.Fatalf("delivery %d is %q, attempt %d", i, d.Message.Payload, d.Attempt)
		}
	}
}

func TestRoomIsKept(t *testing.T) {
	s := startServer(t)
	c := s.connect("")
	r := s.subscribe(c, "s", "{}")
	for range 40 {
		publish(c, text("s", strings.Repeat("x", 1000)))
	}
	for _, tt := range []struct {
		room pluginapi.Room
		want int
	}{{pluginapi.Room{Messages: 3, Bytes: 1 << 20}, 3}, {pluginapi.Room{Messages: 100, Bytes: 2500}, 3}, {pluginapi.Room{Messages: 100, Bytes: 1}, 1}} {
		r.held = nil
		r.receive(limit, tt.room)
		if len(r.held) != tt.want {
			t.Errorf("room %+v: %d deliveries, want %d", tt.room, len(r.held), tt.want)
		}
		for _, d := range r.held { // what is due keeps to it as well
			r.settle(d, pluginapi.Verdict{Kind: core.VerdictRequeue}, pluginapi.ResultDone)
		}
	}
}

func TestGroupsBeginWhereToldAndShareWhatIsOne(t *testing.T) {
	s := startServer(t)
	c := s.connect("")
	publish(c, text("s", "old"))
	late := s.subscribe(c, "s", `{"group": "late", "start": "end"}`)
	early := s.subscribe(c, "s", `{"group": "early"}`)
	publish(c, text("s", "new"))
	for _, want := range []string{"old", "new"} {
		if got := string(early.next().Message.Payload); got != want {
			t.Errorf("from the beginning: %s, want %s", got, want)
		}
	}
	if got := string(late.next().Message.Payload); got != "new" {
		t.Errorf("from the end: %s, want new", got)
	}
	in := s.configure("").Inspect(pluginapi.Usage{
		Registrations: []pluginapi.Registration{{Name: "s"}, {ID: 1, Name: "s"}, {ID: 2, Name: "s", Options: pluginapi.NewOptions([]byte(`{"group": "x"}`))}},
		Destinations:  []pluginapi.Target{{Name: "s"}, {Name: "t"}, {}},
	})
	if diff := cmp.Diff([][]uint32{{1}, {0}, nil}, [][]uint32{in.Registrations[0].Shares, in.Registrations[1].Shares, in.Registrations[2].Shares}); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint32{0, 1, 2}, in.Destinations[0].Exactly); diff != "" || in.Destinations[1].ReturnsTo != nil || len(in.Destinations[2].Findings) != 1 {
		t.Errorf("destinations %+v", in.Destinations)
	}
}

func TestWrongSettings(t *testing.T) {
	for _, raw := range []string{`{"address": "nowhere"}`, `{"address": "unix:"}`, `{"hold": "1ms"}`, `{"group": ""}`} {
		_, err := transport{}.Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(raw))})
		f, ok := errors.AsType[*core.Fault](err)
		if !ok || f.Code != core.FaultInvalid || len(f.Diagnostics) != 1 || !strings.Contains(raw, f.Diagnostics[0].Path) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
