// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestEnds(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m1"))
	b.CatchUp("q")
	c := connect(t, b, settings.Settings{})
	s := c.subscribe("q")
	caught := 0
	for _, want := range []string{"m1", "m2"} {
		for got := false; !got || caught == 0; {
			batch, err := s.Receive(c.ctx, plenty)
			if err != nil {
				t.Fatal(err)
			}
			if len(batch.Deliveries) > 0 {
				got = string(batch.Deliveries[0].Message.Payload) == want
			}
			if batch.CaughtUp {
				caught++
			}
		}
		caught = 0
		if want == "m1" {
			b.Publish("q", memory.Text("m2"))
		}
	}
	b.Report("q", &core.Fault{Code: core.FaultInvalid, Message: "bad line"}, "line 3")
	batch, err := s.Receive(c.ctx, plenty)
	if err != nil || len(batch.Reports) != 1 || batch.Reports[0].Position != "line 3" {
		t.Fatalf("got %+v, %v", batch, err)
	}
	b.End("q", nil)
	if _, err := s.Receive(c.ctx, plenty); !errors.Is(err, io.EOF) {
		t.Errorf("end: %v", err)
	}
	b.Publish("other", memory.Text("m"))
	o := c.subscribe("other")
	c.receive(o, 1)
	b.End("other", &core.Fault{Code: core.FaultDenied, Message: "no more"})
	var f *core.Fault
	if _, err := o.Receive(c.ctx, plenty); !errors.As(err, &f) || f.Code != core.FaultDenied {
		t.Errorf("end with a cause: %v", err)
	}
}

func TestVoidOnCommand(t *testing.T) {
	for _, returns := range []bool{true, false} {
		b := broker(t)
		b.Publish("q", memory.Text("m1"), memory.Text("m2"))
		c := connect(t, b, settings.Settings{})
		s := c.subscribe("q")
		ds := c.receive(s, 2)
		b.Pause("q")
		n := b.Void("q", returns, func(m memory.Message) bool { return string(m.Payload) == "m1" })
		batch, err := s.Receive(c.ctx, pluginapi.Room{})
		if err != nil || n != 1 || len(batch.Voids) != 1 || batch.Voids[0].Returns != returns {
			t.Fatalf("%d voided, got %+v, %v", n, batch, err)
		}
		if got := c.ack(s, ds[0]); got != pluginapi.ResultStale {
			t.Errorf("ack of the void one: %v", got)
		}
		if got := c.ack(s, ds[1]); got != pluginapi.ResultDone {
			t.Errorf("ack of the other: %v", got)
		}
		first := map[bool]string{true: "m1 queued", false: "m1 lost"}[returns]
		if diff := cmp.Diff([]string{first, "m2 acked"}, states(b, "q")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSeek(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m1"), memory.Text("m2"), memory.Text("m3"))
	c := connect(t, b, settings.Settings{})
	s := c.subscribe("q")
	ds := c.receive(s, 3)
	c.ack(s, ds[0])
	c.ack(s, ds[1])
	seeker := s.(pluginapi.Seeker)
	if err := seeker.Seek(c.ctx, pluginapi.Position{Kind: pluginapi.PositionExact, Value: ds[1].Position}); err != nil {
		t.Fatal(err)
	}
	batch, err := s.Receive(c.ctx, pluginapi.Room{})
	if err != nil || len(batch.Voids) != 1 || !batch.Voids[0].Returns {
		t.Fatalf("got %+v, %v", batch, err)
	}
	if diff := cmp.Diff([]string{"m2", "m3"}, payloads(c.receive(s, 2))); diff != "" {
		t.Error(diff)
	}
	if err := seeker.Seek(c.ctx, pluginapi.Position{Kind: pluginapi.PositionBeginning}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m1", "m2", "m3"}, payloads(c.receive(s, 3))); diff != "" {
		t.Error(diff)
	}
	if err := seeker.Seek(c.ctx, pluginapi.Position{Kind: pluginapi.PositionEnd}); err != nil {
		t.Fatal(err)
	}
	if a := b.Account("q"); a.Acked != 3 {
		t.Errorf("behind the end: %v", a)
	}
	if err := seeker.Seek(c.ctx, pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte("?")}); err == nil {
		t.Error("a foreign position was taken")
	}
}

func TestReleaseTellsTheBrokerNothing(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m"))
	c := connect(t, b, settings.Settings{})
	s := c.subscribe("q")
	d := c.receive(s, 1)[0]
	s.(pluginapi.Releaser).Release([]any{d.Handle})
	if got := c.ack(s, d); got != pluginapi.ResultStale {
		t.Errorf("ack after the release: %v", got)
	}
	if diff := cmp.Diff([]string{"m outstanding"}, states(b, "q")); diff != "" {
		t.Error(diff)
	}
}

// The ack of a delivery whose connection is lost under way is stale, and the
// voids come first.
func TestVerdictOvertakenByADisconnect(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m"))
	c := connect(t, b, settings.Settings{})
	s := c.subscribe("q")
	d := c.receive(s, 1)[0]
	p := c.peer()
	p.Slow(time.Hour) // the result never comes
	result := make(chan pluginapi.ResultStatus, 1)
	go func() {
		result <- s.Settle(context.Background(), []pluginapi.Verdict{{Handle: d.Handle, Kind: core.VerdictAck}})[0].Status
	}()
	if err := b.WaitSettled(c.ctx, "q", 1); err != nil {
		t.Fatal(err)
	}
	p.Disconnect()
	batch, err := s.Receive(c.ctx, plenty)
	if err != nil || len(batch.Voids) != 1 {
		t.Fatalf("got %+v, %v", batch, err)
	}
	if got := <-result; got != pluginapi.ResultStale {
		t.Errorf("result %v", got)
	}
}

// S-PUL-22: an ack that comes after the void is taken while the message waits
// to be delivered again.
func TestLateAck(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m1"), memory.Text("m2"))
	c := connect(t, b, settings.Settings{}.WithSource("q", settings.Source{
		Profiles: []settings.Profile{settings.ProfileOf(settings.KindC())}, LateAcks: true,
	}))
	s := c.subscribe("q")
	ds := c.receive(s, 2)
	b.Pause("q")
	b.Void("q", true, nil)
	if _, err := s.Receive(c.ctx, pluginapi.Room{}); err != nil {
		t.Fatal(err)
	}
	late := s.(pluginapi.LateAcker)
	if got := late.AckLate(c.ctx, []any{ds[0].Handle}); got[0].Status != pluginapi.ResultDone {
		t.Errorf("late ack: %+v", got)
	}
	b.Resume("q")
	c.receive(s, 1)
	if got := late.AckLate(c.ctx, []any{ds[1].Handle}); got[0].Status != pluginapi.ResultStale {
		t.Errorf("after the redelivery: %+v", got)
	}
	if diff := cmp.Diff([]string{"m1 acked", "m2 outstanding"}, states(b, "q")); diff != "" {
		t.Error(diff)
	}
}

// Under Cumulative acks in any order come to the broker as marks, and a release
// pins its scope.
func TestCumulativeHelper(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m1"), memory.Text("m2"), memory.Text("m3"), memory.Text("m4"))
	c := connect(t, b, settings.Settings{}.With("q", settings.KindK()))
	s := c.subscribe("q")
	ds := c.receive(s, 4)
	c.ack(s, ds[1])
	if diff := cmp.Diff([]string{"m1 outstanding", "m2 outstanding", "m3 outstanding", "m4 outstanding"}, states(b, "q")); diff != "" {
		t.Error(diff)
	}
	c.ack(s, ds[0])
	if diff := cmp.Diff([]string{"m1 acked", "m2 acked", "m3 outstanding", "m4 outstanding"}, states(b, "q")); diff != "" {
		t.Error(diff)
	}
}

func TestHeldHelper(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m"))
	set := settings.Settings{}.WithSource("q", settings.Source{
		Profiles: []settings.Profile{settings.ProfileOf(settings.KindC())}, Held: true,
	})
	c := connect(t, b, set)
	s := c.subscribe("q")
	if got := s.Profiles()[0].Requeue; got != core.RequeueDelayed {
		t.Errorf("requeue mode %v", got)
	}
	d := c.receive(s, 1)[0]
	if got := c.settle(s, d, pluginapi.Verdict{Kind: core.VerdictRequeue, Delay: 20 * time.Millisecond}); got == pluginapi.ResultUnsupported {
		t.Errorf("requeue: %v", got)
	}
	if again := c.receive(s, 1)[0]; again.Attempt != 2 {
		t.Errorf("attempt %d", again.Attempt)
	}
	if err := s.Close(c.ctx); err != nil {
		t.Fatal(err)
	}
}
