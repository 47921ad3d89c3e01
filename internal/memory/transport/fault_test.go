// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/memory/transport"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestSettleFaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault memory.SettleFault
		want  pluginapi.ResultStatus
		state string
	}{
		{"failed", memory.SettleFault{Kind: core.VerdictAck, Times: 1, Status: memory.SettleFailed}, pluginapi.ResultFailed, "m outstanding"},
		{"failed and carried out", memory.SettleFault{Times: 1, Status: memory.SettleFailed, Applied: true}, pluginapi.ResultFailed, "m acked"},
		{"stale", memory.SettleFault{Times: 1, Status: memory.SettleStale}, pluginapi.ResultStale, "m outstanding"},
		{"another kind", memory.SettleFault{Kind: core.VerdictRequeue, Status: memory.SettleFailed}, pluginapi.ResultDone, "m acked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := broker(t)
			b.Publish("q", memory.Text("m"))
			b.FailSettles("q", tt.fault)
			c := connect(t, b, settings.Settings{})
			s := c.subscribe("q")
			if got := c.ack(s, c.receive(s, 1)[0]); got != tt.want {
				t.Errorf("result %v, want %v", got, tt.want)
			}
			if diff := cmp.Diff([]string{tt.state}, states(b, "q")); diff != "" {
				t.Error(diff)
			}
			b.Publish("q", memory.Text("next"))
			if got := c.ack(s, c.receive(s, 1)[0]); got != pluginapi.ResultDone {
				t.Errorf("the next: %v", got)
			}
		})
	}
}

// A test can stop a plugin at every point of its life, and refuse it at those
// that can fail.
func TestPoints(t *testing.T) {
	b := broker(t)
	var seen []memory.Point
	var mu sync.Mutex
	for _, p := range []memory.Point{memory.AtConfigure, memory.AtInspect, memory.AtConnect, memory.AtSubscribe, memory.AtEnd, memory.AtClose} {
		pause := b.PauseAt("", p)
		go func() {
			if _, err := pause.Reached(t.Context()); err == nil {
				mu.Lock()
				seen = append(seen, p)
				mu.Unlock()
				pause.Release()
			}
		}()
	}
	e, err := configure(b, settings.Settings{Control: true})
	if err != nil {
		t.Fatal(err)
	}
	e.Inspect(pluginapi.Usage{})
	conn, err := e.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.Subscribe(t.Context(), pluginapi.Registration{Name: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []memory.Point{memory.AtConfigure, memory.AtInspect, memory.AtConnect, memory.AtSubscribe, memory.AtEnd, memory.AtClose}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestDenials(t *testing.T) {
	b := broker(t)
	no := &core.Fault{Code: core.FaultDenied, Message: "no entry"}
	denied := func(err error) {
		t.Helper()
		var f *core.Fault
		if !errors.As(err, &f) || f.Code != core.FaultDenied {
			t.Errorf("got %v", err)
		}
	}
	set := settings.Settings{Control: true}
	b.Deny("mem", memory.AtConfigure, 1, no)
	_, err := configure(b, set)
	denied(err)

	b.Deny("", memory.AtInspect, 1, no)
	e, err := configure(b, set)
	if err != nil {
		t.Fatal(err)
	}
	if in := e.Inspect(pluginapi.Usage{}); len(in.Findings) != 1 {
		t.Errorf("findings %+v", in.Findings)
	}
	b.Deny("mem", memory.AtConnect, 1, no)
	_, err = e.Connect(t.Context(), nil)
	denied(err)

	c := connect(t, b, set)
	cancel := b.Deny("mem", memory.AtSubscribe, 0, no)
	for range 2 {
		_, err = c.conn.Subscribe(c.ctx, pluginapi.Registration{Name: "q"})
		denied(err)
	}
	cancel()
	c.subscribe("q")

	b.Down()
	e, err = configure(b, settings.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var f *core.Fault
	if _, err := e.Connect(t.Context(), nil); !errors.As(err, &f) || f.Code != core.FaultUnavailable || !f.Transient {
		t.Errorf("connect without a broker: %v", err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	b := broker(t)
	for _, tt := range []struct {
		name string
		set  settings.Settings
		path string
	}{
		{"an unknown mode", settings.Settings{}.WithSource("q", settings.Source{Profiles: []settings.Profile{{Ack: "double"}}}), "sources.q.profiles[0].ack"},
		{"a negative limit", settings.Settings{}.WithDestination("d", settings.Destination{MaxBytes: -1}), "destinations.d.max_bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := configure(b, tt.set)
			var f *core.Fault
			if !errors.As(err, &f) || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != tt.path {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestHangs(t *testing.T) {
	b := broker(t)
	b.Publish("q", memory.Text("m"))
	c := connect(t, b, settings.Settings{})
	s := c.subscribe("q")
	d := c.receive(s, 1)[0]
	p := c.peer()
	for _, tt := range []struct {
		name string
		hang func(ctx context.Context, on bool) error
		call func(ctx context.Context)
	}{
		{"receive", p.HangReceive, func(ctx context.Context) { _, _ = s.Receive(ctx, plenty) }},
		{"settle", p.HangSettle, func(ctx context.Context) {
			s.Settle(ctx, []pluginapi.Verdict{{Handle: d.Handle, Kind: core.VerdictAck}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.hang(c.ctx, true); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			back := make(chan struct{})
			go func() { tt.call(ctx); close(back) }()
			select {
			case <-back:
				t.Error("it came back with its context")
			case <-time.After(20 * time.Millisecond):
			}
			if err := tt.hang(c.ctx, false); err != nil {
				t.Fatal(err)
			}
			<-back
		})
	}
}

func TestPanicsOnCommand(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{})
	s := c.subscribe("q")
	p := c.peer()
	for where, call := range map[string]func(){
		memory.PanicReceive: func() { _, _ = s.Receive(c.ctx, plenty) },
		memory.PanicSettle:  func() { s.Settle(c.ctx, nil) },
		memory.PanicPublish: func() { c.conn.Publish(c.ctx, nil, nil) },
	} {
		t.Run(where, func(t *testing.T) {
			if err := p.Panic(c.ctx, where); err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				call()
			}()
			if where != memory.PanicReceive {
				call() // once only
			}
		})
	}
}

// The process ends at the n-th ack: with it carried out, or just before.
func TestExitAfterAcks(t *testing.T) {
	for _, before := range []bool{false, true} {
		b := broker(t)
		b.Publish("q", memory.Text("m1"), memory.Text("m2"), memory.Text("m3"))
		e, err := configure(b, settings.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := e.Connect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, b: b, conn: conn, ctx: t.Context()}
		s := c.subscribe("q")
		ds := c.receive(s, 3)
		p := c.peer()
		if err := p.ExitAfterAcks(c.ctx, 2, before); err != nil {
			t.Fatal(err)
		}
		var vs []pluginapi.Verdict
		for _, d := range ds {
			vs = append(vs, pluginapi.Verdict{Handle: d.Handle, Kind: core.VerdictAck})
		}
		s.Settle(c.ctx, vs)
		if err := p.WaitGone(c.ctx); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int{false: 2, true: 1}[before]
		if a := b.Account("q"); a.Acked != want || a.Queued != 3-want {
			t.Errorf("before=%v: %v", before, a)
		}
		c.close()
	}
}

func TestExitOnCommand(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{})
	p := c.peer()
	if err := p.Exit(c.ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := p.HangSettle(c.ctx, true); err == nil {
		t.Error("a command to a plugin that is gone was taken")
	}
	if err := p.Kill(); err == nil {
		t.Error("the test's own process was to be killed")
	}
}

func TestNoiseAndResume(t *testing.T) {
	b := broker(t)
	var log bytes.Buffer
	raw, err := pluginapi.EncodeSettings(settings.Settings{Address: "in process"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := transport.New(transport.Dial(b.Dial)).Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(raw), Endpoint: "mem", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := e.Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	conn.(pluginapi.Resumer).ReportResume(func(r []byte) { kept = append(kept, string(r)) })
	p, err := b.Client(t.Context(), "mem")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Noise(t.Context(), "log", "a line\n", 3); err != nil {
		t.Fatal(err)
	}
	if err := p.SetResume(t.Context(), "session-9"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "a line"); got != 3 {
		t.Errorf("%d lines in the log", got)
	}
	if !slices.Equal(kept, []string{p.Session(), "session-9"}) {
		t.Errorf("resume bytes %q", kept)
	}
}

// A restart of the broker keeps what is unsettled for durable subscriptions
// alone.
func TestBrokerRestart(t *testing.T) {
	b := broker(t)
	b.Publish("durable", memory.Text("m"))
	b.Publish("volatile", memory.Text("m"))
	c := connect(t, b, settings.Settings{}.With("durable", settings.KindA()).
		With("volatile", with(settings.KindA(), func(c *core.Capabilities) { c.Durable = false })))
	s, v := c.subscribe("durable"), c.subscribe("volatile")
	c.receive(s, 1)
	c.receive(v, 1)
	b.Restart()
	batch, err := s.Receive(c.ctx, plenty)
	if err != nil {
		t.Fatal(err)
	}
	if len(batch.Deliveries) == 0 {
		c.receive(s, 1)
	}
	if d, l := b.Account("durable"), b.Account("volatile"); d.Outstanding != 1 || l.Lost != 1 {
		t.Errorf("durable %v, volatile %v", d, l)
	}
}

func TestInspect(t *testing.T) {
	b := broker(t)
	e, err := configure(b, settings.Settings{}.
		With("orders", settings.KindA(), settings.KindU()).
		WithSource("bad", settings.Source{Refuse: "cannot be read", Warn: "is odd"}).
		WithDestination("orders.eu", settings.Destination{Confirms: "queued", Refuse: "cannot be written"}))
	if err != nil {
		t.Fatal(err)
	}
	got := e.Inspect(pluginapi.Usage{
		Registrations: []pluginapi.Registration{{ID: 0, Name: "orders"}, {ID: 1, Name: "bad"}, {ID: 2, Name: "orders*"}},
		Destinations:  []pluginapi.Target{{Name: "orders"}, {Name: "orders.eu"}, {Name: "dead"}},
	})
	own := settings.KindA()
	own.Address = "orders"
	unsettled := settings.KindU()
	unsettled.Address = "orders"
	if diff := cmp.Diff([]core.Capabilities{own, unsettled}, got.Registrations[0].Profiles); diff != "" {
		t.Error(diff)
	}
	if fs := got.Registrations[1].Findings; len(fs) != 2 || fs[0].Warning || !fs[1].Warning {
		t.Errorf("findings %+v", fs)
	}
	d := got.Destinations
	if diff := cmp.Diff([][]uint32{{0, 2}, {2}, nil}, [][]uint32{d[0].ReturnsTo, d[1].ReturnsTo, d[2].ReturnsTo}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]uint32{{0}, nil, nil}, [][]uint32{d[0].Exactly, d[1].Exactly, d[2].Exactly}); diff != "" {
		t.Error(diff)
	}
	if d[1].Publishing.Confirms != core.ConfirmQueued || d[2].Publishing.Confirms != core.ConfirmStored || len(d[1].Findings) != 1 {
		t.Errorf("destinations %+v", d)
	}
}

func TestConnectAgain(t *testing.T) {
	b := broker(t)
	e, err := configure(b, settings.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Connect(ctx, nil); err == nil {
		t.Fatal("a Connect whose context has ended succeeded")
	}
	conn, err := e.Connect(t.Context(), nil)
	if err != nil {
		t.Fatalf("connect again: %v", err)
	}
	if _, err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
