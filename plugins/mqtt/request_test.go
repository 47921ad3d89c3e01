// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// responder answers requests to a topic until the test ends. answer returns the
// replies to one; nil messages are none.
func (d *direct) responder(topic string, answer func(m core.Message) []string) {
	d.t.Helper()
	s, err := d.conn.Subscribe(d.ctx, pluginapi.Registration{Name: topic})
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(d.ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			b, err := s.Receive(ctx, servicetest.Plenty)
			for i := range b.Deliveries {
				m := b.Deliveries[i].Message.Clone()
				to, _ := m.Headers.Get("reply-to")
				id, _ := m.Headers.Get("correlation-id")
				for _, text := range answer(m) {
					reply := servicetest.Message(string(to), text, "correlation-id", string(id))
					reply.Purpose = pluginapi.PurposeReply
					d.conn.Publish(ctx, []pluginapi.Outgoing{reply}, func(int, pluginapi.Receipt) {})
				}
				s.Settle(ctx, []pluginapi.Verdict{{Handle: b.Deliveries[i].Handle, Kind: core.VerdictAck}})
			}
			if err != nil {
				return
			}
		}
	})
	d.t.Cleanup(func() {
		stop()
		running.Wait()
		if err := s.Close(context.Background()); err != nil {
			d.t.Error(err)
		}
	})
}

// echo answers with what it is asked.
func echo(m core.Message) []string { return []string{string(m.Payload)} }

func (d *direct) ask(ctx context.Context, topic, text string, headers ...string) (string, error) {
	m, err := d.conn.(pluginapi.Requester).Request(ctx, servicetest.Message(topic, text, headers...))
	return string(m.Payload), err
}

// fault returns the fault that an error must be.
func fault(t testing.TB, err error) *core.Fault {
	t.Helper()
	f, ok := errors.AsType[*core.Fault](err)
	if !ok {
		t.Fatalf("%v is no fault", err)
	}
	return f
}

// Many requests at a time each get their own reply, at each QoS.
func TestRequests(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	connectAs(t, b.URL(), "server").responder("rpc", echo)
	d := connectAs(t, b.URL(), "ask er/+#") // no level of a topic
	watch := b.Subscribe(0, []string{"longshore/replies/#"})
	var asking sync.WaitGroup
	for i := range 200 {
		asking.Go(func() {
			m := servicetest.Message("rpc", fmt.Sprint(i))
			m.Options = options(t, settings.PublishOptions{QoS: new(i % 3)})
			reply, err := d.conn.(pluginapi.Requester).Request(d.ctx, m)
			if err != nil || string(reply.Payload) != fmt.Sprint(i) {
				t.Errorf("request %d: %q, %v", i, reply.Payload, err)
			}
		})
	}
	asking.Wait()
	if got, err := d.ask(d.ctx, "rpc", "own id", "Correlation-ID", "mine", "reply-to", "elsewhere"); got != "own id" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	all := watch.Messages(201)
	last := all[len(all)-1]
	if last.Correlation != "mine" || !strings.HasPrefix(last.Topic, "longshore/replies/ask er___-") || last.Topic != all[0].Topic {
		t.Errorf("the reply went to %s, correlation %q", last.Topic, last.Correlation)
	}
	if n := len(b.Lines("Received SUBSCRIBE from ask er")); n != 1 {
		t.Errorf("%d subscriptions", n)
	}
}

// The first of several replies counts; one that is late or to nobody is skipped,
// and the next request gets its own.
func TestRepliesOfSeveral(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	server := connectAs(t, b.URL(), "server")
	server.responder("rpc", func(m core.Message) []string {
		if string(m.Payload) == "mute" {
			return nil
		}
		return []string{string(m.Payload) + " 1", string(m.Payload) + " 2"}
	})
	connectAs(t, b.URL(), "other").responder("rpc", echo)
	d := connectAs(t, b.URL(), "asker")
	for i := range 20 {
		got, err := d.ask(d.ctx, "rpc", fmt.Sprint(i))
		if err != nil || strings.TrimSuffix(got, " 1") != fmt.Sprint(i) {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
	}
}

// Late replies and those of former lives are left out.
func TestRequestInTime(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	asked := make(chan core.Message, 10)
	server := connectAs(t, b.URL(), "server")
	server.responder("rpc", func(m core.Message) []string { asked <- m; return nil })
	d := connectAs(t, b.URL(), "asker")

	ended := make(chan error, 1)
	due, pass := overdue(t)
	go func() { _, err := d.ask(due, "rpc", "slow"); ended <- err }()
	first := <-asked
	pass()
	if f := fault(t, <-ended); f.Code != core.FaultTimeout || !f.Transient || !strings.HasPrefix(f.Message, `request to "rpc": no reply`) {
		t.Errorf("%v", f)
	}
	ctx, cancel := context.WithCancel(d.ctx)
	go func() { _, err := d.ask(ctx, "rpc", "canceled"); ended <- err }()
	<-asked
	cancel()
	if f := fault(t, <-ended); f.Code != core.FaultCanceled {
		t.Errorf("%v", f)
	}
	// The reply to the first one comes while another one waits.
	done := make(chan string, 1)
	go func() { got, _ := d.ask(d.ctx, "rpc", "third"); done <- got }()
	third := <-asked
	for _, m := range []core.Message{first, third} {
		to, id := m.Headers.Value("reply-to"), m.Headers.Value("correlation-id")
		server.confirmed(servicetest.Message(to, string(m.Payload), "correlation-id", id))
	}
	if got := <-done; got != "third" {
		t.Errorf("the third request got %q", got)
	}
	// One under an id that is in use.
	go func() { got, _ := d.ask(d.ctx, "rpc", "fourth", "correlation-id", "x"); done <- got }()
	fourth := <-asked
	_, err := d.ask(d.ctx, "rpc", "fifth", "correlation-id", "x")
	if f := fault(t, err); f.Code != core.FaultConflict {
		t.Errorf("%v", f)
	}
	server.confirmed(servicetest.Message(fourth.Headers.Value("reply-to"), "ok", "correlation-id", "x"))
	if got := <-done; got != "ok" {
		t.Errorf("the fourth request got %q", got)
	}
}

// Where nobody has subscribed, and where the server refuses, it says so at once.
func TestRequestToNobody(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Lines: []string{"max_qos 1"}})
	d := connectAs(t, b.URL(), "asker")
	_, err := d.ask(d.ctx, "nobody", "x")
	if f := fault(t, err); f.Code != core.FaultNotFound || !strings.Contains(f.Error(), `request to "nobody": nobody has subscribed to it; start the responder`) {
		t.Errorf("%v", f)
	}
	_, err = d.ask(d.ctx, "a/#", "x")
	if f := fault(t, err); f.Code != core.FaultInvalid || !strings.HasPrefix(f.Message, `request to "a/#": `) {
		t.Errorf("%v", f)
	}
	m := servicetest.Message("nobody", "x")
	m.Options = options(t, settings.PublishOptions{QoS: new(2)})
	_, err = d.conn.(pluginapi.Requester).Request(d.ctx, m)
	if f := fault(t, err); f.Code != core.FaultUnsupported || !strings.Contains(f.Message, "takes 1 at most") {
		t.Errorf("%v", f)
	}
}

// A request goes on waiting while the connection is away, with a new session and
// with the old one.
func TestRequestOverReconnect(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*settings.Settings){"new session": func(*settings.Settings) {}, "kept": keptSession} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := mosquitto.Start(t, mosquitto.Config{})
			p := proxy.Start(t, b.Address())
			asked := make(chan core.Message, 1)
			server := connectAs(t, b.URL(), "server")
			server.responder("rpc", func(m core.Message) []string { asked <- m; return nil })
			d := connectAs(t, p.URL(), "asker", change)
			done := make(chan string, 1)
			go func() {
				got, err := d.ask(d.ctx, "rpc", "x")
				if err != nil {
					t.Error(err)
				}
				done <- got
			}()
			m := <-asked
			p.Await(proxy.ToClient, proxy.Puback, 1)
			subscribed := p.Count(proxy.ToClient, proxy.Suback)
			p.Cut()
			p.Await(proxy.ToClient, proxy.Connack, 2)
			if name == "new session" {
				p.Await(proxy.ToClient, proxy.Suback, subscribed+1)
			}
			server.confirmed(servicetest.Message(m.Headers.Value("reply-to"), "after all", "correlation-id", m.Headers.Value("correlation-id")))
			if got := <-done; got != "after all" {
				t.Errorf("%q", got)
			}
		})
	}
}

// Close ends what waits for a reply, also while the reply topic is subscribed to.
func TestRequestsAtClose(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	asked := make(chan core.Message, 1)
	connectAs(t, b.URL(), "server").responder("rpc", func(m core.Message) []string { asked <- m; return nil })
	d := connectAs(t, b.URL(), "asker")
	ended := make(chan error, 1)
	go func() { _, err := d.ask(t.Context(), "rpc", "x"); ended <- err }()
	<-asked
	d.close()
	if f := fault(t, <-ended); f.Code != core.FaultClosed {
		t.Errorf("%v", f)
	}
	_, err := d.ask(t.Context(), "rpc", "x")
	if f := fault(t, err); f.Code != core.FaultClosed {
		t.Errorf("after Close: %v", f)
	}

	p := proxy.Start(t, b.Address())
	stalled := connectAs(t, p.URL(), "stalled")
	p.Stall(proxy.ToClient)
	go func() { _, err := stalled.ask(t.Context(), "rpc", "x"); ended <- err }()
	p.Await(proxy.ToServer, proxy.Subscribe, 1)
	go stalled.close()
	fault(t, <-ended)
	p.Resume()
}

// More requests than can wait are refused.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{Quiet: true})
	connectAs(t, b.URL(), "server").responder("rpc", func(core.Message) []string { return nil })
	d := connectAs(t, b.URL(), "asker")
	ctx, cancel := context.WithCancel(d.ctx)
	const n = 1100
	errs := make(chan error, n)
	for range n {
		go func() { _, err := d.ask(ctx, "rpc", "x"); errs <- err }()
	}
	for range n - 1024 {
		if f := fault(t, <-errs); f.Code != core.FaultExhausted || !f.Transient {
			t.Fatalf("%v", f)
		}
	}
	cancel()
	for range 1024 {
		if f := fault(t, <-errs); f.Code != core.FaultCanceled {
			t.Fatalf("%v", f)
		}
	}
}
