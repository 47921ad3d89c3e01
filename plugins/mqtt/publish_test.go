// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// keptSession has the server keep the session over a reconnect.
func keptSession(s *settings.Settings) {
	s.CleanStart, s.SessionExpiry = new(false), core.Duration(time.Hour)
}

// Options and headers become what a foreign client sees.
func TestPublishOptions(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	sub := b.Subscribe(2, []string{"#"})
	d := connectAs(t, b.URL(), "pub")
	m := servicetest.Message("a/b", "hello", "content-type", "text/plain", "reply-to", "r", "correlation-id", "7", "N", "v", "n", "w")
	m.Options = options(t, settings.PublishOptions{QoS: new(2), Retain: true, Expiry: core.Duration(time.Minute), ContentType: "application/json"})
	plain := servicetest.Message("plain", "")
	quick := servicetest.Message("quick", "x")
	quick.Options = options(t, settings.PublishOptions{QoS: new(0)})
	d.confirmed(m, plain, quick)
	got := sub.Messages(3)
	slices.SortFunc(got, func(x, y mosquitto.Message) int { return strings.Compare(x.Topic, y.Topic) })
	servicetest.Expect(t, "messages", []string{got[0].String(), got[1].String(), got[2].String()},
		"a/b hello content-type=application/json reply-to=r correlation-id=7 N=v n=w", "plain ", "quick x")
	if x := got[0]; x.QoS != 2 || x.Expiry == 0 || x.Expiry > 60 || !x.Text {
		t.Errorf("QoS %d, expiry %d, text %t", x.QoS, x.Expiry, x.Text)
	}
	if got[1].QoS != 1 || got[2].QoS != 0 {
		t.Errorf("QoS %d and %d, want 1 (the default) and 0", got[1].QoS, got[2].QoS)
	}
	if late := b.Subscribe(0, []string{"a/b"}).Messages(1); string(late[0].Payload) != "hello" {
		t.Errorf("retained is %v", late)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	d := connectAs(t, b.URL(), "pub")
	with := func(o settings.PublishOptions) pluginapi.Outgoing {
		m := servicetest.Message("t", "x")
		m.Options = options(t, o)
		return m
	}
	wildcard, control := servicetest.Message("a/+", "x"), servicetest.Message("t", "x", "name", "a\nb")
	big := servicetest.Message("big", strings.Repeat("x", 2<<20))
	for i, want := range []struct {
		m     pluginapi.Outgoing
		code  core.FaultCode
		texts []string
	}{
		{wildcard, core.FaultInvalid, []string{`publish to "a/+"`, "wildcard"}},
		{control, core.FaultInvalid, []string{`publish to "t"`, `"name"`, "control character"}},
		{with(settings.PublishOptions{Expiry: core.Duration(1500 * time.Millisecond)}), core.FaultInvalid, []string{"expiry", "1.5s", "whole"}},
		{with(settings.PublishOptions{ContentType: "a\x00"}), core.FaultInvalid, []string{"content_type", "control character"}},
		{with(settings.PublishOptions{ContentType: strings.Repeat("x", 70000)}), core.FaultInvalid, []string{"content_type", "65535"}},
		{big, core.FaultTooLarge, []string{"2097", "1048576", "max_packet_size"}},
	} {
		r := d.publish(want.m)[0]
		if r.Status != pluginapi.ReceiptRefused || r.Fault.Code != want.code || r.Fault.Transient {
			t.Errorf("%d: %d %v", i, r.Status, r.Fault)
			continue
		}
		for _, text := range want.texts {
			if !strings.Contains(r.Fault.Error(), text) {
				t.Errorf("%d: %q lacks %q", i, r.Fault.Error(), text)
			}
		}
	}
	d.close()
	if n := len(b.Lines("PUBLISH from pub")); n != 0 {
		t.Errorf("%d packets were sent", n)
	}
	if r := servicetest.Publish(t.Context(), t, d.conn, servicetest.Message("t", "x"))[0]; r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultClosed {
		t.Errorf("after Close: %v", r.Fault)
	}
}

// M-13: the server's limit is kept to before any byte of a message is written.
func TestServersPacketSize(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Lines: []string{"max_packet_size 1048576", "max_qos 1", "retain_available false"}})
	p := proxy.Start(t, b.Address())
	d := connectAs(t, p.URL(), "pub", func(s *settings.Settings) { s.MaxPacketSize = 4 << 20 })
	big := servicetest.Message("big", strings.Repeat("x", 2<<20))
	exact, retained := servicetest.Message("t", "x"), servicetest.Message("t", "x")
	exact.Options = options(t, settings.PublishOptions{QoS: new(2)})
	retained.Options = options(t, settings.PublishOptions{Retain: true})
	rs := d.publish(big, exact, retained, servicetest.Message("t", "fits"))
	for i, text := range []string{"the server's limit is 1048576", "the server takes 1 at most", "retains no messages"} {
		if rs[i].Status != pluginapi.ReceiptRefused || !strings.Contains(rs[i].Fault.Message, text) {
			t.Errorf("%d: %v, want %q", i, rs[i].Fault, text)
		}
	}
	if rs[3].Status != pluginapi.ReceiptConfirmed || p.Count(proxy.ToServer, proxy.Publish) != 1 || p.Accepted() != 1 {
		t.Errorf("%d packets, %d connections", p.Count(proxy.ToServer, proxy.Publish), p.Accepted())
	}
}

// M-12: nobody has subscribed: the publish succeeds, and says so.
func TestPublishUnrouted(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	b.Subscribe(0, []string{"read"})
	d := connectAs(t, b.URL(), "pub")
	msgs := append(outgoing(t, "nobody", 2, settings.PublishOptions{}), outgoing(t, "read", 1, settings.PublishOptions{})...)
	msgs[1].Options = options(t, settings.PublishOptions{QoS: new(2)})
	rs := d.confirmed(msgs...)
	if !rs[0].Unrouted || rs[2].Unrouted {
		t.Errorf("receipts %+v", rs)
	}
}

// What the access list forbids is refused, and for good. Mosquitto ends the
// connection behind its answer.
func TestPublishDenied(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Users: map[string]string{"ann": "secret"}, ACL: []string{"user ann", "topic write ok/#"}})
	for _, qos := range []int{1, 2} {
		d := connectAs(t, b.URL(), fmt.Sprint("pub", qos), keptSession, func(s *settings.Settings) {
			s.Username, s.Password = "ann", core.NewSecret("secret")
		})
		r := d.publish(outgoing(t, "no", 1, settings.PublishOptions{QoS: new(qos)})...)[0]
		if r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultDenied || r.Fault.Transient || !strings.Contains(r.Fault.Message, "not authorized (0x87)") {
			t.Errorf("QoS %d: %d %v", qos, r.Status, r.Fault)
		}
		d.confirmed(outgoing(t, "ok/x", 1, settings.PublishOptions{QoS: new(2)})...)
	}
}

// M-07, outgoing: the connection is cut again and again in the middle of
// handshakes, and everything arrives once.
func TestExactlyOnceOverCuts(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]struct {
		d  proxy.Direction
		of int
		at proxy.Place
	}{
		"PUBREC lost":     {proxy.ToClient, proxy.Pubrec, proxy.Before},
		"PUBREC received": {proxy.ToClient, proxy.Pubrec, proxy.Behind},
		"PUBREL in part":  {proxy.ToServer, proxy.Pubrel, proxy.Inside},
		"PUBCOMP lost":    {proxy.ToClient, proxy.Pubcomp, proxy.Before},
		"PUBLISH in part": {proxy.ToServer, proxy.Publish, proxy.Inside},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			sub := b.Subscribe(1, []string{"jobs"})
			p := proxy.Start(t, b.Address())
			d := connectAs(t, p.URL(), "pub", keptSession)
			const n, every = 50, 7
			for k := range n / every {
				p.CutAt(cut.d, cut.of, every*(k+1), cut.at)
			}
			d.confirmed(outgoing(t, "jobs", n, settings.PublishOptions{QoS: new(2)})...)
			want := make([]string, n)
			for i := range want {
				want[i] = fmt.Sprintf("jobs %d", i)
			}
			servicetest.Expect(t, "messages", append(sub.Got(n), sub.Rest()...), want...)
			if p.Accepted() < 2 {
				t.Error("nothing was cut")
			}
		})
	}
}

// Under load, with the connection cut at places that nobody chose, everything of QoS 2
// arrives once, and everything of QoS 1.
func TestCutsUnderLoad(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	sub := b.Subscribe(1, []string{"#"})
	p := proxy.Start(t, b.Address())
	d := connectAs(t, p.URL(), "pub", keptSession)
	const n, rounds = 2000, 4
	for k := range rounds {
		p.CutAt(proxy.ToClient, proxy.Pubrec, 300*(k+1), proxy.Before)
		p.CutAt(proxy.ToServer, proxy.Publish, 777*(k+1), proxy.Inside)
	}
	done := make(chan pluginapi.Receipt, 2*n)
	for from := 0; from < n; from += 100 {
		msgs := append(outgoing(t, "once", 100, settings.PublishOptions{QoS: new(2)}), outgoing(t, "least", 100, settings.PublishOptions{})...)
		for i := range msgs {
			msgs[i].Message.Payload = fmt.Append(nil, from+i%100)
		}
		d.conn.Publish(d.ctx, msgs, func(_ int, r pluginapi.Receipt) { done <- r })
	}
	for range 2 * n {
		if r := <-done; r.Status != pluginapi.ReceiptConfirmed {
			t.Fatalf("%d %v", r.Status, r.Fault)
		}
	}
	came := make(map[string]int)
	for _, m := range sub.Rest() {
		came[m]++
	}
	doubled := 0
	for i := range n {
		if once := came[fmt.Sprintf("once %d", i)]; once != 1 {
			t.Errorf("message %d of QoS 2 came %d times", i, once)
		}
		least := came[fmt.Sprintf("least %d", i)]
		if least == 0 {
			t.Errorf("message %d of QoS 1 is lost", i)
		}
		doubled += max(least-1, 0)
	}
	if p.Accepted() < rounds {
		t.Errorf("%d connections", p.Accepted())
	}
	t.Logf("%d connections, %d doubled at QoS 1", p.Accepted(), doubled)
}

// Without a session that is kept nothing of QoS 1 is lost, and what is unknown of
// QoS 2 is said to be.
func TestNewSessionOverCuts(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	sub := b.Subscribe(1, []string{"#"})
	p := proxy.Start(t, b.Address())
	d := connectAs(t, p.URL(), "pub")
	p.CutAt(proxy.ToServer, proxy.Publish, 30, proxy.Inside)
	p.CutAt(proxy.ToServer, proxy.Pubrel, 5, proxy.Inside)
	msgs := append(outgoing(t, "once", 50, settings.PublishOptions{QoS: new(2)}), outgoing(t, "least", 50, settings.PublishOptions{})...)
	rs := d.publish(msgs...)
	came := make(map[string]int)
	for _, m := range sub.Rest() {
		came[m]++
	}
	unknown := 0
	for i, r := range rs {
		text := msgs[i].Message.Name + " " + string(msgs[i].Message.Payload)
		n := came[text]
		switch {
		case r.Status == pluginapi.ReceiptUnknown && i < 50 && n <= 1:
			unknown++
		case r.Status != pluginapi.ReceiptConfirmed || n == 0 || i < 50 && n > 1:
			t.Errorf("%s came %d times: %d %v", text, n, r.Status, r.Fault)
		}
	}
	if unknown == 0 {
		t.Error("nothing is unknown")
	}
}

// S-MQT-43: a stop right after the last publish loses nothing, though a handshake
// of QoS 2 is open, and though the connection is cut then.
func TestTailAtClose(t *testing.T) {
	t.Parallel()
	for _, qos := range []int{1, 2} {
		for _, cuts := range []bool{false, true} {
			t.Run(fmt.Sprintf("S-MQT-43/QoS %d, cut %t", qos, cuts), func(t *testing.T) {
				t.Parallel()
				b := mosquitto.Start(t, mosquitto.Config{})
				sub := b.Subscribe(1, []string{"tail"})
				p := proxy.Start(t, b.Address())
				d := connectAs(t, p.URL(), "pub", keptSession)
				if cuts {
					p.CutAt(proxy.ToClient, map[int]int{1: proxy.Puback, 2: proxy.Pubrec}[qos], 250, proxy.Before)
				}
				const n = 500
				var mu sync.Mutex
				confirmed := 0
				d.conn.Publish(d.ctx, outgoing(t, "tail", n, settings.PublishOptions{QoS: new(qos)}), func(i int, r pluginapi.Receipt) {
					mu.Lock()
					defer mu.Unlock()
					if r.Status != pluginapi.ReceiptConfirmed {
						t.Errorf("message %d: %d %v", i, r.Status, r.Fault)
					}
					confirmed++
				})
				d.close()
				mu.Lock()
				defer mu.Unlock()
				if confirmed != n {
					t.Errorf("%d receipts", confirmed)
				}
				seen := make(map[string]bool)
				got := append(sub.Got(n), sub.Rest()...)
				for _, m := range got {
					seen[m] = true
				}
				if len(seen) != n || qos == 2 && len(got) != n {
					t.Errorf("%d messages, %d of them different, want %d", len(got), len(seen), n)
				}
			})
		}
	}
}

// The broker is stopped and started again: what it had not confirmed is published
// when it is back.
func TestPublishOverBrokerRestart(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Persistent: true})
	d := connectAs(t, b.URL(), "pub", keptSession)
	d.confirmed(outgoing(t, "t", 1, settings.PublishOptions{})...)
	b.Stop()
	done := make(chan pluginapi.Receipt, 20)
	d.conn.Publish(d.ctx, outgoing(t, "t", 10, settings.PublishOptions{QoS: new(2)}), func(_ int, r pluginapi.Receipt) { done <- r })
	b.Start()
	for range 10 {
		if r := <-done; r.Status != pluginapi.ReceiptConfirmed {
			t.Errorf("%d %v", r.Status, r.Fault)
		}
	}
}

// A receipt of QoS 0 waits for nothing but its own write, whoever writes it: it is
// published while the connection reads, and nothing is written behind it.
func TestQuickReceiptsWhileReading(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	d := connectAs(t, b.URL(), "both")
	came := make(chan struct{}, 3)
	d.responder("in", func(core.Message) []string { came <- struct{}{}; return nil })
	other := connectAs(t, b.URL(), "other")
	in, out := outgoing(t, "in", 3, settings.PublishOptions{QoS: new(0)}), outgoing(t, "out", 1, settings.PublishOptions{QoS: new(0)})
	for range 1000 {
		other.conn.Publish(d.ctx, in, func(int, pluginapi.Receipt) {})
		for range in {
			<-came
			d.confirmed(out...)
		}
	}
}
