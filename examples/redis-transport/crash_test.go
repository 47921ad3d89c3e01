// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestNoServer(t *testing.T) {
	s := startServer(t)
	s.kill()
	_, err := s.configure("").Connect(t.Context(), nil)
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || f.Code != core.FaultUnavailable || !f.Transient || !strings.Contains(f.Message, s.address()) {
		t.Errorf("%#v", err)
	}
}

func TestWrongPassword(t *testing.T) {
	s := startServer(t, "--requirepass", "right")
	for more, want := range map[string]core.FaultCode{
		"": core.FaultDenied, `, "password": "wrong"`: core.FaultDenied, `, "password": "right"`: core.FaultUnspecified,
	} {
		c, err := s.configure(more).Connect(t.Context(), nil)
		var got core.FaultCode
		if f, ok := errors.AsType[*core.Fault](err); ok {
			got = f.Code
		}
		if got != want {
			t.Errorf("%s: %v, want code %v", more, err, want)
		}
		if c != nil {
			c.Close(t.Context())
		}
	}
}

// A server that is killed and comes back has what is pending, with its counts,
// where it writes an append-only file.
func TestServerIsKilled(t *testing.T) {
	s := startServer(t, "--appendonly", "yes")
	c := s.connect(`, "durable": true`)
	states := make(chan pluginapi.LinkState, 100)
	c.ReportLink(func(st pluginapi.LinkState) { states <- st })
	if st := <-states; !st.Up {
		t.Fatalf("state %+v, want up", st)
	}
	r := s.subscribe(c, "s", "{}")
	if !r.Profiles()[0].Durable {
		t.Error("not durable, with an append-only file")
	}
	publish(c, text("s", "acked"), text("s", "requeued"), text("s", "waiting"))
	acked, requeued := r.next(), r.next()
	r.held = nil
	s.kill()
	if st := <-states; st.Up || !strings.Contains(st.Reason, s.address()) {
		t.Errorf("state %+v, want down with the address", st)
	}
	if got := publish(c, text("s", "x"))[0]; got.Status != pluginapi.ReceiptRefused || !got.Fault.Transient {
		t.Errorf("publish without a server: %+v", got)
	}
	r.settle(acked, pluginapi.Verdict{Kind: core.VerdictExtend, Hold: time.Second}, pluginapi.ResultFailed)
	r.none(200 * time.Millisecond)
	s.start()
	if st := <-states; !st.Up {
		t.Errorf("state %+v, want up", st)
	}
	r.ack(acked, pluginapi.ResultDone)
	r.settle(requeued, pluginapi.Verdict{Kind: core.VerdictRequeue}, pluginapi.ResultDone)
	if d := r.next(); string(d.Message.Payload) != "requeued" || d.Attempt != 2 {
		t.Errorf("%q, attempt %d, want requeued and 2", d.Message.Payload, d.Attempt)
	}
}

// A server that has forgotten everything ends the subscription with a fault that
// passes, so that it is opened anew.
func TestServerForgets(t *testing.T) {
	s := startServer(t)
	c := s.connect(`, "durable": true`)
	r := s.subscribe(c, "s", "{}")
	if r.Profiles()[0].Durable {
		t.Error("durable, without an append-only file")
	}
	publish(c, text("s", "x"))
	d := r.next()
	s.kill()
	s.start()
	var err error
	s.until("the end", func() bool { err = r.receive(time.Second, wide); return len(r.void) > 0 })
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || f.Code != core.FaultNotFound || !f.Transient || !r.void[0].All || r.void[0].Returns {
		t.Errorf("%v and voids %+v", err, r.void)
	}
	if got := r.AckLate(t.Context(), []any{d.Handle}); got[0].Status != pluginapi.ResultStale {
		t.Errorf("ack of what is gone: %+v", got)
	}
	again := s.subscribe(c, "s", "{}")
	publish(c, text("s", "y"))
	if d := again.next(); string(d.Message.Payload) != "y" || d.Attempt != 1 {
		t.Errorf("%q, attempt %d", d.Message.Payload, d.Attempt)
	}
}

// A server that hangs holds nobody up for longer than is allowed.
func TestServerHangs(t *testing.T) {
	s := startServer(t)
	c := s.connect(`, "timeout": "300ms"`)
	r := s.subscribe(c, "s", "{}")
	r.receive(time.Millisecond, wide)
	s.client.Do(t.Context(), "CLIENT", "PAUSE", 10*limit.Milliseconds(), "ALL")
	from := time.Now()
	r.receive(time.Millisecond, wide)
	if took := time.Since(from); took > limit {
		t.Errorf("Receive came back after %v", took)
	}
	if got := publish(c, text("s", "x"))[0]; got.Status == pluginapi.ReceiptConfirmed {
		t.Errorf("receipt %+v", got)
	}
}

func consumers(t *testing.T, s *server, stream string) map[string]int64 {
	t.Helper()
	list, err := s.client.XInfoConsumers(t.Context(), stream, "longshore").Result()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, x := range list {
		got[x.Name] = x.Pending
	}
	return got
}

// A consumer goes when it is closed with nothing pending. One that died with
// something goes when that has been claimed, with its counts.
func TestConsumersLeave(t *testing.T) {
	s := startServer(t)
	const more = `, "hold": "300ms"`
	dead := s.connect(more)
	r := s.subscribe(dead, "s", "{}")
	publish(dead, text("s", "x"), text("s", "y"))
	r.next()
	y := r.next()
	r.settle(y, pluginapi.Verdict{Kind: core.VerdictRequeue}, pluginapi.ResultDone)
	if y = r.next(); y.Attempt != 2 {
		t.Fatalf("attempt %d, want 2", y.Attempt)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := consumers(t, s, "s"); len(got) != 1 {
		t.Fatalf("consumers %v, want the one that has something", got)
	}
	live := s.connect(more)
	next := s.subscribe(live, "s", "{}")
	want := map[string]uint32{"x": 2, "y": 3}
	for range want {
		d := next.next()
		if d.Attempt != want[string(d.Message.Payload)] {
			t.Errorf("%s: attempt %d, want %d", d.Message.Payload, d.Attempt, want[string(d.Message.Payload)])
		}
		next.ack(d, pluginapi.ResultDone)
	}
	if got := consumers(t, s, "s"); len(got) != 1 || got[next.consumer] != 0 {
		t.Errorf("consumers %v, want %s alone", got, next.consumer)
	}
	if _, err := live.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := consumers(t, s, "s"); len(got) != 0 {
		t.Errorf("consumers %v, want none", got)
	}
}

func TestAckedEntriesStayUnlessDeleted(t *testing.T) {
	s := startServer(t)
	for more, want := range map[string]int64{"": 1, `, "delete_acked": true`: 0} {
		s.client.Del(context.Background(), "s")
		c := s.connect(more)
		r := s.subscribe(c, "s", "{}")
		publish(c, text("s", "x"))
		r.ack(r.next(), pluginapi.ResultDone)
		if got := s.client.XLen(t.Context(), "s").Val(); got != want {
			t.Errorf("with %q %d entries are left, want %d", more, got, want)
		}
	}
}

// An entry that somebody deletes while it is pending is told.
func TestPendingEntryIsDeleted(t *testing.T) {
	s := startServer(t)
	c := s.connect(`, "hold": "300ms"`)
	r := s.subscribe(c, "s", "{}")
	publish(c, text("s", "x"))
	d := r.next()
	s.client.XDel(t.Context(), "s", string(d.Identity))
	s.until("the report", func() bool { r.receive(100*time.Millisecond, wide); return len(r.said) > 0 })
	if r.said[0].Position != string(d.Identity) {
		t.Errorf("report %+v", r.said[0])
	}
}

func TestKeyOfAnotherKind(t *testing.T) {
	s := startServer(t)
	c := s.connect("")
	s.client.Set(t.Context(), "text", "x", 0)
	_, err := c.Subscribe(t.Context(), pluginapi.Registration{Name: "text"})
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultConflict || f.Transient {
		t.Errorf("subscribe: %v", err)
	}
	got := publish(c, text("text", "x"), text("s", "y"))
	if got[0].Status != pluginapi.ReceiptRefused || got[0].Fault.Code != core.FaultConflict || got[1].Status != pluginapi.ReceiptConfirmed {
		t.Errorf("receipts %+v", got)
	}
}
