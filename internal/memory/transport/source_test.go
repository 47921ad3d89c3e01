// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/pluginapi"
)

func with(c core.Capabilities, change func(*core.Capabilities)) core.Capabilities {
	change(&c)
	return c
}

// Each verdict does at the broker what the kind says, or is unsupported and
// does nothing.
func TestVerdicts(t *testing.T) {
	var (
		ack     = pluginapi.Verdict{Kind: core.VerdictAck}
		requeue = pluginapi.Verdict{Kind: core.VerdictRequeue}
		delayed = pluginapi.Verdict{Kind: core.VerdictRequeue, Delay: time.Minute}
		reject  = pluginapi.Verdict{Kind: core.VerdictReject, Reason: "bad"}
		extend  = pluginapi.Verdict{Kind: core.VerdictExtend, Hold: time.Second}
	)
	for _, tt := range []struct {
		name    string
		kind    core.Capabilities
		verdict pluginapi.Verdict
		want    pluginapi.ResultStatus
		state   string
	}{
		{"A acks", settings.KindA(), ack, pluginapi.ResultDone, "m acked"},
		{"A requeues", settings.KindA(), requeue, pluginapi.ResultDone, "m queued"},
		{"A cannot delay", settings.KindA(), delayed, pluginapi.ResultUnsupported, "m outstanding"},
		{"A rejects", settings.KindA(), reject, pluginapi.ResultDone, "m rejected"},
		{"A cannot extend", settings.KindA(), extend, pluginapi.ResultUnsupported, "m outstanding"},
		{"D delays", settings.KindD(), delayed, pluginapi.ResultDone, "m queued"},
		{"D delays below its limit only", with(settings.KindD(), func(c *core.Capabilities) { c.MaxDelay = time.Minute }), delayed, pluginapi.ResultUnsupported, "m outstanding"},
		{"B cannot reject", settings.KindB(), reject, pluginapi.ResultUnsupported, "m outstanding"},
		{"K acks", settings.KindK(), ack, pluginapi.ResultDone, "m acked"},
		{"K cannot requeue", settings.KindK(), requeue, pluginapi.ResultUnsupported, "m outstanding"},
		{"M cannot requeue", settings.KindM(), requeue, pluginapi.ResultUnsupported, "m outstanding"},
		{"T cannot extend", settings.KindT(), extend, pluginapi.ResultUnsupported, "m outstanding"},
		{"T with extend", with(settings.KindT(), func(c *core.Capabilities) { c.Extend = true }), extend, pluginapi.ResultDone, "m outstanding"},
		{"a dead-lettering reject", with(settings.KindA(), func(c *core.Capabilities) { c.Reject = core.RejectDeadLetters }), reject, pluginapi.ResultDone, "m dead-lettered"},
		{"U settles nothing", settings.KindU(), ack, pluginapi.ResultStale, "m sent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := broker(t)
			b.Publish("q", memory.Text("m"))
			c := connect(t, b, settings.Settings{}.With("q", tt.kind))
			s := c.subscribe("q")
			d := c.receive(s, 1)[0]
			b.Pause("q") // what comes back is not delivered again
			if got := c.settle(s, d, tt.verdict); got != tt.want {
				t.Errorf("result %v, want %v", got, tt.want)
			}
			if diff := cmp.Diff([]string{tt.state}, states(b, "q")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRejectMovesToTheDeadLetterQueue(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Message{Payload: []byte("m"), Headers: core.Headers{{Name: "K", Value: []byte("v")}}})
	c := connect(t, b, settings.Settings{}.With("q", with(settings.KindA(), func(c *core.Capabilities) { c.Reject = core.RejectDeadLetters })))
	s := c.subscribe("q")
	c.settle(s, c.receive(s, 1)[0], pluginapi.Verdict{Kind: core.VerdictReject})
	dead := b.Published("q" + memory.DeadSuffix)
	if len(dead) != 1 || string(dead[0].Payload) != "m" || len(dead[0].Headers) != 1 {
		t.Errorf("dead letters: %v", dead)
	}
}

// A delivery that ends with its connection goes as Unsettled says, and comes
// with a count one higher where it comes again.
func TestUnsettledAfterADisconnect(t *testing.T) {
	lost := with(settings.KindA(), func(c *core.Capabilities) { c.Unsettled = core.UnsettledLost })
	for _, tt := range []struct {
		name    string
		kind    core.Capabilities
		returns bool
		attempt uint32
		state   string
	}{
		{"on disconnect", settings.KindC(), true, 2, "m outstanding"},
		{"on disconnect, not counted", settings.KindA(), true, 0, "m outstanding"},
		{"on resume", with(settings.KindM(), func(c *core.Capabilities) { c.Counts = core.CountNative }), true, 2, "m outstanding"},
		{"lost", lost, false, 0, "m lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := broker(t)
			b.Publish("q", memory.Text("m"))
			c := connect(t, b, settings.Settings{}.With("q", tt.kind))
			s := c.subscribe("q")
			first := c.receive(s, 1)[0]
			c.peer().Disconnect()
			batch, err := s.Receive(c.ctx, plenty)
			if err != nil {
				t.Fatal(err)
			}
			if len(batch.Voids) != 1 || batch.Voids[0].Returns != tt.returns || !contains(batch.Voids[0].Handles, first.Handle) {
				t.Fatalf("voids %+v", batch.Voids)
			}
			if got := c.ack(s, first); got != pluginapi.ResultStale {
				t.Errorf("ack after the void: %v", got)
			}
			if tt.returns {
				again := append(batch.Deliveries, c.receive(s, 1-len(batch.Deliveries))...)[0]
				if again.Attempt != tt.attempt || string(again.Identity) != string(first.Identity) {
					t.Errorf("attempt %d, identity %x after %x", again.Attempt, again.Identity, first.Identity)
				}
			} else {
				c.nothing(s)
			}
			if diff := cmp.Diff([]string{tt.state}, states(b, "q")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func contains(hs []any, h any) bool {
	for _, o := range hs {
		if o == h {
			return true
		}
	}
	return false
}

// A kept session holds its deliveries until a connection takes it over; another
// session never sees them.
func TestSessionIsKeptOverPlugins(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m"))
	set := settings.Settings{}.With("q", settings.KindM())
	first := connect(t, b, set)
	s := first.subscribe("q")
	first.receive(s, 1)
	session := first.close()

	other := connect(t, b, set)
	so := other.subscribe("q")
	other.nothing(so)
	if err := so.Close(other.ctx); err != nil {
		t.Fatal(err)
	}

	second := resume(t, b, set, session)
	s = second.subscribe("q")
	if diff := cmp.Diff([]string{"m"}, payloads(second.receive(s, 1))); diff != "" {
		t.Error(diff)
	}
}

func TestHoldsEndAndAreProlonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		kind := with(settings.KindT(), func(c *core.Capabilities) { c.Extend = true })
		b.Publish("q", memory.Text("m"))
		c := connect(t, b, settings.Settings{}.With("q", kind))
		defer func() {
			c.close()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}()
		c.ctx = t.Context() // in the bubble 20 s pass at once
		s := c.subscribe("q")
		d := c.receive(s, 1)[0]
		time.Sleep(20 * time.Second)
		if got := c.settle(s, d, pluginapi.Verdict{Kind: core.VerdictExtend, Hold: 25 * time.Second}); got != pluginapi.ResultDone {
			t.Fatalf("extend: %v", got)
		}
		start := time.Now()
		batch, err := s.Receive(t.Context(), plenty)
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 25*time.Second {
			t.Errorf("void after %v", got)
		}
		if len(batch.Voids) != 1 || !batch.Voids[0].Returns {
			t.Errorf("voids %+v", batch.Voids)
		}
		if got := c.ack(s, d); got != pluginapi.ResultStale {
			t.Errorf("late ack: %v", got)
		}
	})
}

func TestDelayedRequeueComesBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		b.Publish("q", memory.Text("m"))
		c := connect(t, b, settings.Settings{}.With("q", settings.KindB()))
		defer func() {
			c.close()
			_ = b.Close()
		}()
		c.ctx = t.Context()
		s := c.subscribe("q")
		d := c.receive(s, 1)[0]
		start := time.Now()
		c.settle(s, d, pluginapi.Verdict{Kind: core.VerdictRequeue, Delay: time.Hour})
		again := c.receive(s, 1)[0]
		if got := time.Since(start); got != time.Hour || again.Attempt != 2 {
			t.Errorf("back after %v as attempt %d", got, again.Attempt)
		}
	})
}

func TestCumulativeAcksWithinAScope(t *testing.T) {
	b := broker(t)
	for _, m := range []string{"a1", "b1", "a2", "b2", "a3"} {
		b.Publish("q", memory.Message{Payload: []byte(m), Scope: m[:1]})
	}
	c := connect(t, b, settings.Settings{}.WithSource("q", settings.Source{
		Profiles: []settings.Profile{settings.ProfileOf(settings.KindK())}, Raw: true,
	}))
	s := c.subscribe("q")
	ds := c.receive(s, 5)
	c.ack(s, ds[2])
	want := []string{"a1 acked", "b1 outstanding", "a2 acked", "b2 outstanding", "a3 outstanding"}
	if diff := cmp.Diff(want, states(b, "q")); diff != "" {
		t.Error(diff)
	}
}

// A requeued delivery of an ordered source comes back in its place, of one
// without order behind the others.
func TestOrderAfterARequeue(t *testing.T) {
	for _, tt := range []struct {
		name  string
		order core.OrderMode
		want  []string
	}{
		{"total", core.OrderTotal, []string{"m1", "m2", "m3"}},
		{"none", core.OrderNone, []string{"m2", "m3", "m1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := broker(t)
			b.Publish("q", memory.Text("m1"), memory.Text("m2"), memory.Text("m3"))
			c := connect(t, b, settings.Settings{}.With("q", with(settings.KindA(), func(c *core.Capabilities) { c.Order = tt.order })))
			s := c.subscribe("q")
			c.settle(s, c.receive(s, 1)[0], pluginapi.Verdict{Kind: core.VerdictRequeue})
			if diff := cmp.Diff(tt.want, payloads(c.receive(s, 3))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The broker delivers no more than there is room for, and what was never handed
// on goes back when the subscription is closed, acks or not.
func TestRoom(t *testing.T) {
	for name, kind := range map[string]core.Capabilities{"acks": settings.KindA(), "no acks": settings.KindU()} {
		t.Run(name, func(t *testing.T) {
			b := broker(t)
			for range 10 {
				b.Publish("q", memory.Text("0123456789"))
			}
			c := connect(t, b, settings.Settings{}.With("q", kind))
			s := c.subscribe("q")
			batch, err := s.Receive(c.ctx, pluginapi.Room{Messages: 4, Bytes: 1 << 20})
			if err != nil || len(batch.Deliveries) > 4 {
				t.Fatalf("got %d, %v", len(batch.Deliveries), err)
			}
			got := len(batch.Deliveries) + len(c.receive(s, 4-len(batch.Deliveries)))
			if err := b.WaitDelivered(c.ctx, "q", 4); err != nil {
				t.Fatal(err)
			}
			// Bytes are overdrawn by one message at most.
			for i := 0; i < 2; {
				batch, err = s.Receive(c.ctx, pluginapi.Room{Messages: 100, Bytes: 15 - 10*int64(i)})
				if err != nil {
					t.Fatal(err)
				}
				i += len(batch.Deliveries)
				got += len(batch.Deliveries)
			}
			if got != 6 {
				t.Errorf("%d deliveries, want 6", got)
			}
			if err := s.Close(c.ctx); err != nil {
				t.Fatal(err)
			}
			if a := b.Account("q"); a.Deliveries != 6 {
				t.Errorf("after the close: %v", a)
			}
		})
	}
}

func TestProfilesByMessage(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("acked"), memory.Message{Payload: []byte("not"), Profile: 1})
	c := connect(t, b, settings.Settings{}.With("q", settings.KindM(), settings.KindU()))
	s := c.subscribe("q")
	ds := c.receive(s, 2)
	if ds[0].Profile != 0 || ds[1].Profile != 1 {
		t.Errorf("profiles %d, %d", ds[0].Profile, ds[1].Profile)
	}
	if diff := cmp.Diff([]string{"acked outstanding", "not sent"}, states(b, "q")); diff != "" {
		t.Error(diff)
	}
}

func TestPatternReadsSeveralQueues(t *testing.T) {
	b := broker(t)
	b.Publish("a.1", memory.Text("m1"))
	b.Publish("b", memory.Text("not"))
	b.Publish("a.2", memory.Text("m2"))
	c := connect(t, b, settings.Settings{}.With("a.*", settings.KindA()))
	s := c.subscribe("a.*")
	ds := c.receive(s, 2)
	if diff := cmp.Diff([]string{"m1", "m2"}, payloads(ds)); diff != "" {
		t.Error(diff)
	}
	if ds[1].Message.Name != "a.2" {
		t.Errorf("name %q", ds[1].Message.Name)
	}
}
