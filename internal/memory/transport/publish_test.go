// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestPublishedMessagesCarryEverything(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{}.WithDestination("q", settings.Destination{MaxDelay: core.Duration(time.Hour)}))
	m := out("q", "payload")
	m.Message.Headers = core.Headers{{Name: "K", Value: []byte{0, 255}}, {Name: "k", Value: []byte("again")}}
	m.Purpose, m.Carry, m.DedupID, m.DeliverAfter = pluginapi.PurposeRetry, []byte("c"), "id", time.Minute
	m.Options = pluginapi.NewOptions([]byte(`{"a":1}`))
	if got := c.publish(m)[0]; got.Status != pluginapi.ReceiptConfirmed || got.Unrouted {
		t.Fatalf("receipt %+v", got)
	}
	got := b.Published("q")[0]
	got.PublishedAt = time.Time{}
	want := memory.Message{
		ID: 1, Queue: "q", Headers: m.Message.Headers, Payload: []byte("payload"), By: "mem", Purpose: 2,
		Carry: []byte("c"), DedupID: "id", DeliverAfter: time.Minute, Options: []byte(`{"a":1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each limit of a destination refuses what exceeds it, and nothing arrives.
func TestDestinationLimits(t *testing.T) {
	headers := func(hs ...string) core.Headers {
		var list core.Headers
		for i := 0; i < len(hs); i += 2 {
			list = append(list, core.Header{Name: hs[i], Value: []byte(hs[i+1])})
		}
		return list
	}
	for _, tt := range []struct {
		name    string
		dest    settings.Destination
		purpose pluginapi.Purpose
		headers core.Headers
		after   time.Duration
		want    pluginapi.ReceiptStatus
		code    core.FaultCode
	}{
		{name: "anything", headers: headers("K", "\x00\xff", "k", "")},
		{name: "no headers", dest: settings.Destination{Headers: "none"}, headers: headers("k", "v"), code: core.FaultUnsupported},
		{name: "no headers, none there", dest: settings.Destination{Headers: "none"}},
		{name: "no headers, dead letter", dest: settings.Destination{Headers: "none"}, purpose: pluginapi.PurposeDeadLetter, headers: headers("k", "v")},
		{name: "text", dest: settings.Destination{Headers: "native-text"}, headers: headers("k", "v")},
		{name: "text, bytes", dest: settings.Destination{Headers: "native-text"}, headers: headers("k", "\xff"), code: core.FaultInvalid},
		{name: "text, a line break", dest: settings.Destination{Headers: "native-text"}, headers: headers("k", "a\nb"), code: core.FaultInvalid},
		{name: "enveloped", dest: settings.Destination{Headers: "enveloped"}, headers: headers("k", "\xff")},
		{name: "no repeats", dest: settings.Destination{NoRepeats: true}, headers: headers("K", "v", "k", "w"), code: core.FaultInvalid},
		{name: "bytes", dest: settings.Destination{MaxBytes: 8}, headers: headers("k", "v")},
		{name: "too many bytes", dest: settings.Destination{MaxBytes: 8}, headers: headers("k", "vw"), code: core.FaultTooLarge},
		{name: "too many headers", dest: settings.Destination{MaxHeaders: 1}, headers: headers("k", "v", "l", "w"), code: core.FaultTooLarge},
		{name: "a delay", dest: settings.Destination{MaxDelay: core.Duration(time.Minute)}, after: time.Minute - 1},
		{name: "too long a delay", dest: settings.Destination{MaxDelay: core.Duration(time.Minute)}, after: time.Minute, code: core.FaultUnsupported},
		{name: "no delay", after: time.Second, code: core.FaultUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := broker(t)
			c := connect(t, b, settings.Settings{}.WithDestination("q", tt.dest))
			m := out("q", "123456")
			m.Message.Headers, m.DeliverAfter = tt.headers, tt.after
			if tt.purpose != 0 {
				m.Purpose = tt.purpose
			}
			r := c.publish(m)[0]
			arrived := len(b.Published("q"))
			if tt.code == 0 {
				if r.Status != pluginapi.ReceiptConfirmed || arrived != 1 {
					t.Errorf("receipt %+v, %d arrived", r, arrived)
				}
				return
			}
			if r.Status != pluginapi.ReceiptRefused || r.Fault.Code != tt.code || r.Fault.Transient || arrived != 0 {
				t.Errorf("receipt %+v, %d arrived", r, arrived)
			}
		})
	}
}

func TestRetention(t *testing.T) {
	b := broker(t)
	set := settings.Settings{}.
		WithDestination("nothing", settings.Destination{Retains: "nothing"}).
		WithDestination("process", settings.Destination{Retains: "process"})
	c, other := connect(t, b, set), connect(t, b, set)
	if r := c.publish(out("nothing", "nobody reads"))[0]; !r.Unrouted {
		t.Errorf("receipt %+v", r)
	}
	s := other.subscribe("nothing")
	if r := c.publish(out("nothing", "read"))[0]; r.Unrouted {
		t.Errorf("receipt %+v", r)
	}
	if diff := cmp.Diff([]string{"read"}, payloads(other.receive(s, 1))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"nobody reads lost", "read outstanding"}, states(b, "nothing")); diff != "" {
		t.Error(diff)
	}

	// What only its own process reads goes to nobody else, and is lost with it.
	c.publish(out("process", "m1"), out("process", "m2"))
	foreign := other.subscribe("process")
	other.nothing(foreign)
	own := c.subscribe("process")
	c.ack(own, c.receive(own, 1)[0])
	c.close()
	other.nothing(foreign)
	if diff := cmp.Diff([]string{"m1 acked", "m2 lost"}, states(b, "process")); diff != "" {
		t.Error(diff)
	}
}

func TestDedup(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{}.WithDestination("q", settings.Destination{Dedups: true}))
	m := out("q", "m")
	m.DedupID = "one"
	plain := out("other", "m")
	plain.DedupID = "one"
	for _, r := range c.publish(m, m, plain, plain) {
		if r.Status != pluginapi.ReceiptConfirmed {
			t.Errorf("receipt %+v", r)
		}
	}
	if q, o := b.Account("q"), b.Account("other"); q.Published != 1 || o.Published != 2 || o.Doubles != 1 {
		t.Errorf("with dedup %v, without %v", q, o)
	}
}

func TestDelayedPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		c := connect(t, b, settings.Settings{}.WithDestination("q", settings.Destination{MaxDelay: core.Duration(time.Hour)}))
		defer func() {
			c.close()
			_ = b.Close()
		}()
		c.ctx = t.Context()
		s := c.subscribe("q")
		start := time.Now()
		m := out("q", "m")
		m.DeliverAfter = time.Minute
		c.publish(m)
		c.receive(s, 1)
		if got := time.Since(start); got != time.Minute {
			t.Errorf("delivered after %v", got)
		}
	})
}

// What a receipt waits for is what the destination confirms: with the broker's
// receipts held back only a stored one waits.
func TestConfirms(t *testing.T) {
	for confirms, waits := range map[string]bool{"nothing": false, "queued": false, "handed-over": false, "stored": true} {
		t.Run(confirms, func(t *testing.T) {
			b := broker(t)
			c := connect(t, b, settings.Settings{}.WithDestination("q", settings.Destination{Confirms: confirms}))
			release := b.HoldReceipts("q")
			done := c.start(out("q", "m"))
			if waits {
				if err := b.Wait(c.ctx, "a held receipt", func(v memory.View) bool { return v.HeldReceipts("q") == 1 }); err != nil {
					t.Fatal(err)
				}
				if len(done) != 1 { // the mark that Publish has returned
					t.Errorf("%d receipts before the release", len(done)-1)
				}
				release()
			}
			if r := c.wait(done)[0]; r.Status != pluginapi.ReceiptConfirmed {
				t.Errorf("receipt %+v", r)
			}
			release()
		})
	}
}

func TestPublishFaults(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{})
	b.FailPublishes("q", memory.PublishFault{Times: 1, Status: memory.PublishRefused})
	b.FailPublishes("q", memory.PublishFault{Times: 1, Status: memory.PublishUnknown, Applied: true})
	cancel := b.FailPublishes("q", memory.PublishFault{
		Only:   func(m memory.Message) bool { return strings.HasPrefix(string(m.Payload), "bad") },
		Status: memory.PublishRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no"},
	})
	rs := c.publish(out("q", "m1"), out("q", "m2"), out("q", "bad1"), out("q", "m3"), out("q", "bad2"))
	cancel()
	rs = append(rs, c.publish(out("q", "bad3"))...)
	var got []pluginapi.ReceiptStatus
	for _, r := range rs {
		got = append(got, r.Status)
	}
	const (
		yes, no, perhaps = pluginapi.ReceiptConfirmed, pluginapi.ReceiptRefused, pluginapi.ReceiptUnknown
	)
	if diff := cmp.Diff([]pluginapi.ReceiptStatus{no, perhaps, no, yes, no, yes}, got); diff != "" {
		t.Error(diff)
	}
	if !rs[0].Fault.Transient || rs[2].Fault.Transient || rs[2].Fault.Code != core.FaultDenied {
		t.Errorf("faults %v, %v", rs[0].Fault, rs[2].Fault)
	}
	if diff := cmp.Diff([]string{"m2 queued", "m3 queued", "bad3 queued"}, states(b, "q")); diff != "" {
		t.Error(diff)
	}
}

// Receipts that are missing when the connection ends are unknown; without a
// connection publishes are refused for now, until it is back.
func TestPublishOverADisconnect(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{})
	links := make(chan pluginapi.LinkState, 8)
	c.conn.(pluginapi.LinkReporter).ReportLink(func(s pluginapi.LinkState) { links <- s })
	if s := <-links; !s.Up {
		t.Fatalf("link %+v", s)
	}
	b.HoldReceipts("q")
	done := c.start(out("q", "m1"))
	if err := b.WaitPublished(c.ctx, "q", 1); err != nil {
		t.Fatal(err)
	}
	b.Down()
	if r := c.wait(done)[0]; r.Status != pluginapi.ReceiptUnknown || !r.Fault.Transient {
		t.Errorf("under way: %+v", r)
	}
	if s := <-links; s.Up || s.Reason == "" {
		t.Errorf("link %+v", s)
	}
	if r := c.publish(out("q", "m2"))[0]; r.Status != pluginapi.ReceiptRefused || !r.Fault.Transient {
		t.Errorf("without a connection: %+v", r)
	}
	b.Up()
	if s := <-links; !s.Up {
		t.Errorf("link %+v", s)
	}
	if r := c.publish(out("free", "m3"))[0]; r.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestCloseWaitsForReceipts(t *testing.T) {
	b := broker(t)
	c := connect(t, b, settings.Settings{})
	release := b.HoldReceipts("q")
	done := c.start(out("q", "m"))
	if err := b.Wait(c.ctx, "a held receipt", func(v memory.View) bool { return v.HeldReceipts("q") == 1 }); err != nil {
		t.Fatal(err)
	}
	pause := b.PauseAt("mem", memory.AtClose)
	closed := make(chan struct{})
	go func() { c.close(); close(closed) }()
	if _, err := pause.Reached(c.ctx); err != nil {
		t.Fatal(err)
	}
	pause.Release()
	select {
	case <-closed:
		t.Error("closed with a receipt missing")
	case <-time.After(20 * time.Millisecond):
	}
	release()
	<-closed
	if r := c.wait(done)[0]; r.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("receipt %+v", r)
	}
}

func TestRequest(t *testing.T) {
	b := broker(t)
	b.Respond("rpc", func(m memory.Message) memory.Message { return memory.Text("re: " + string(m.Payload)) })
	c := connect(t, b, settings.Settings{})
	r := c.conn.(pluginapi.Requester)
	got, err := r.Request(c.ctx, out("rpc", "hello"))
	if err != nil || string(got.Payload) != "re: hello" {
		t.Errorf("got %q, %v", got.Payload, err)
	}
	if _, err := r.Request(c.ctx, out("nobody", "hello")); err == nil {
		t.Error("a request that nobody answers was answered")
	}
}
