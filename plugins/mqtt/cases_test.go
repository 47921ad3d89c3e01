// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// numbers are payloads from 1 to n.
func numbers(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(i+1))
	}
	return out
}

// nothingLeft checks that the session of a service has nothing more for t.
func nothingLeft(t *testing.T, b *mosquitto.Broker, qos int) {
	t.Helper()
	b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("last"), QoS: qos})
	runs, _ := again(t, b, qos, 1)
	servicetest.Expect(t, "runs after a restart", runs, "t 1 last")
}

// One slow handler holds up nobody else's ack.
func TestM_01_SettlingOutOfOrder(t *testing.T) {
	t.Parallel()
	const n = 100
	s := newService(t, rowOptions{set: func(s *settings.Settings) {
		keptSession(s)
		s.ReceiveMaximum = 10
	}})
	slow := make(chan struct{})
	s.Handle(s.reads("t", 1), func(m *host.Message[[]byte]) error {
		if string(m.Value) == "1" {
			<-slow
		}
		return nil
	}, host.Workers(10))
	s.Start()
	s.b.PublishAll(mosquitto.Message{Topic: "t", QoS: 1}, numbers(n)...)
	runs := s.Ran(n)
	s.b.Await(n-1, "Received PUBACK from "+clientID)
	close(slow)
	s.stop()
	if slices.Sort(runs); len(slices.Compact(runs)) != n {
		t.Errorf("runs %q", runs)
	}
	if acks := s.passed("out PUBACK"); acks != n {
		t.Errorf("%d acks", acks)
	}
	nothingLeft(t, s.b, 1)
}

// A stop the moment the last handler returns leaves no ack behind.
func TestM_02_AcksAtStop(t *testing.T) {
	t.Parallel()
	const n, rounds = 200, 10
	b := mosquitto.Start(t, mosquitto.Config{})
	for range rounds {
		s := newServiceAt(t, b, rowOptions{set: keptSession})
		var runs atomic.Int32
		stop := make(chan struct{})
		s.Handle(s.reads("t", 1), func(*host.Message[[]byte]) error {
			if runs.Add(1) == n {
				close(stop)
			}
			return nil
		})
		s.Start()
		before := len(b.Lines("Received PUBACK from " + clientID))
		b.PublishAll(mosquitto.Message{Topic: "t", QoS: 1}, numbers(n)...)
		<-stop
		s.Cancel()
		s.Ended()
		b.Await(before+n, "Received PUBACK from "+clientID)
		if got := runs.Load(); got != n {
			t.Fatalf("%d runs", got)
		}
	}
	nothingLeft(t, b, 1)
}

// Handlers that are busy over a restart of the broker: nothing is lost, also where
// the plugin is killed right behind their acks, and nobody else's packet is acked.
func TestM_03_BusyOverAReconnect(t *testing.T) {
	t.Parallel()
	const busy, more = 3, 30
	s := newService(t, rowOptions{
		broker: mosquitto.Config{Persistent: true},
		set: func(s *settings.Settings) {
			keptSession(s)
			s.ReceiveMaximum = busy
		},
	})
	var waiting atomic.Int32
	goOn := make(chan struct{})
	marked := make(chan string, 1000)
	s.Handle(s.reads("t", 1), func(m *host.Message[[]byte]) error {
		if m.Header("mqtt-redelivered") == "true" {
			marked <- string(m.Value)
		}
		if waiting.Add(1) <= busy {
			<-goOn
		}
		return nil
	}, host.Workers(2*busy))
	s.Start()
	s.b.PublishAll(mosquitto.Message{Topic: "t", QoS: 1}, numbers(busy + more)[:busy]...)
	handled := s.Ran(busy)
	s.b.Stop()
	s.b.Start()
	s.Eventually("its session is resumed", func() bool { return len(s.Log.Lines("session resumed")) > 0 })
	s.b.PublishAll(mosquitto.Message{Topic: "t", QoS: 1}, numbers(busy + more)[busy:]...)
	close(goOn)
	s.kill()
	all := map[string]bool{}
	s.Eventually("all are handled", func() bool {
		for _, r := range append(s.Rest(), handled...) {
			all[r] = true
		}
		return len(all) == busy+more
	})
	s.Cancel()
	if err := s.Wait(); err != nil {
		t.Errorf("the host ended with %v", err)
	}
	if len(marked) < busy {
		t.Errorf("%d are marked as redelivered", len(marked))
	}
	delivered := map[string]bool{}
	for _, p := range s.trace() {
		id := p[strings.LastIndex(p, " ")+1:]
		switch {
		case strings.HasPrefix(p, "in PUBLISH"):
			delivered[id] = true
		case strings.HasPrefix(p, "out PUBACK") && !delivered[id]:
			t.Errorf("%s was not delivered since the broker started", p)
		}
	}
}

// A broker that comes back without its state is subscribed to again.
func TestM_04_SubscriptionsGone(t *testing.T) {
	t.Parallel()
	const restarts, n = 3, 10
	s := newService(t, rowOptions{})
	for _, f := range []string{"a/+", "b/#"} {
		s.Handle(s.filters(f, ""), servicetest.Always(nil), host.RetryTo(s.in.To("r")))
	}
	s.Start()
	for i := range restarts {
		s.b.Stop()
		s.b.Start()
		s.Eventually("it is told", func() bool { return len(s.Log.Lines("session lost")) == i+1 })
		s.b.Await(2, clientID+" 1 ")
		for _, topic := range []string{"a/x", "b/y/z"} {
			s.b.PublishAll(mosquitto.Message{Topic: topic, QoS: 1}, numbers(n)...)
		}
		s.Handled(2 * n)
	}
	s.Stop()
	if lost := s.Log.Lines("level=WARN", "onnection"); len(lost) != restarts {
		t.Errorf("%d warnings of %d losses:\n%s", len(lost), restarts, strings.Join(lost, "\n"))
	}
}

// A message of QoS 2 reaches the handler once, wherever the connection is cut.
func TestM_07_CutInTheMiddle(t *testing.T) {
	t.Parallel()
	const n = 50
	b := mosquitto.Start(t, mosquitto.Config{})
	p := proxy.Start(t, b.Address())
	s := newServiceAt(t, b, rowOptions{set: func(s *settings.Settings) {
		keptSession(s)
		s.URL = settings.URL(p.URL())
	}})
	s.Handle(s.reads("t", 2), servicetest.Always(nil))
	s.Start()
	for i, payload := range numbers(n) {
		if i%7 == 6 {
			p.CutAt(proxy.ToServer, proxy.Pubrec, 1, proxy.Place(i%3))
		}
		s.put("t", payload, 2)
	}
	runs := s.Ran(n)
	s.Stop()
	if slices.Sort(runs); len(slices.Compact(runs)) != n || p.Accepted() < 3 {
		t.Errorf("%d connections, runs %q", p.Accepted(), runs)
	}
}

// kill ends the plugin's process as kill -9 does.
func (s *service) kill() {
	s.t.Helper()
	started := s.Log.Lines("plugin process started")
	killPlugin(s.t, started[len(started)-1])
	s.Eventually("another one is started", func() bool { return len(s.Log.Lines("plugin process started")) > len(started) })
}

// A PUBREL for what a former process has received is answered, and its packet
// identifier is free again.
func TestM_08_QoS2AfterARestart(t *testing.T) {
	t.Parallel()
	const n = 5
	b := mosquitto.Start(t, mosquitto.Config{})
	p := proxy.Start(t, b.Address())
	s := newServiceAt(t, b, rowOptions{set: func(s *settings.Settings) {
		keptSession(s)
		s.URL, s.ReceiveMaximum = settings.URL(p.URL()), 1
	}})
	goOn := make(chan struct{})
	s.Handle(s.reads("t", 2), func(m *host.Message[[]byte]) error {
		if string(m.Value) == "cut" {
			<-goOn
		}
		return nil
	})
	s.Start()
	s.put("t", "cut", 2)
	s.Ran(1)
	p.Stall(proxy.ToClient)
	close(goOn)
	s.b.Await(1, "Sending PUBREL to "+clientID) // which does not arrive
	s.kill()
	p.Resume()
	for _, payload := range numbers(n) {
		s.put("t", payload, 2)
	}
	got := map[string]int{}
	s.Eventually("all are handled", func() bool {
		for _, r := range s.Rest() {
			got[r]++
		}
		return len(got) >= n && got["t 1 5"] > 0
	})
	s.Cancel()
	s.Ended()
	for _, payload := range numbers(n) {
		if got["t 1 "+payload] != 1 {
			t.Errorf("%s is handled %d times", payload, got["t 1 "+payload])
		}
	}
	if more := got["t 1 cut"]; more > 1 {
		t.Errorf("what was cut is handled %d times", 1+more)
	}
}

// A retained message is handled once for a subscription, not once for each
// connection.
func TestM_10_Retained(t *testing.T) {
	t.Parallel()
	const reconnects = 3
	b := mosquitto.Start(t, mosquitto.Config{})
	p := proxy.Start(t, b.Address())
	b.Publish(mosquitto.Message{Topic: "r/1", Payload: []byte("x"), QoS: 1, Retain: true})
	s := newServiceAt(t, b, rowOptions{set: func(s *settings.Settings) {
		keptSession(s)
		s.URL = settings.URL(p.URL())
	}})
	s.Handle(s.filters("r/#", ""), servicetest.Always(nil), host.RetryTo(s.in.To("b")))
	s.Start()
	servicetest.Expect(t, "runs", s.Handled(1), "r/1 1 x")
	b.Await(1, "Received PUBACK from "+clientID)
	for i := range reconnects {
		p.Cut()
		s.Eventually("it is connected again", func() bool { return len(s.Log.Lines("session resumed")) == i+1 })
	}
	b.Publish(mosquitto.Message{Topic: "r/2", Payload: []byte("last"), QoS: 1})
	servicetest.Expect(t, "runs", s.Handled(1), "r/2 1 last")
	s.stop()
}

// A dead letter that nobody reads is published, and that is said.
func TestM_12_NobodySubscribed(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("t", 1), servicetest.Always(host.Retry(nil)), host.MaxAttempts(1), host.DeadLetterTo(s.in.To("dlq/x")))
	s.Start()
	s.put("t", "x", 1)
	s.Handled(1)
	s.stop()
	s.copiedFirst("t", "dlq/x", 1)
	s.codes(map[string]int{"L-CAP-DL": 1})
	if lines := s.Log.Lines("level=WARN", "dlq/x", "nobody reads"); len(lines) != 1 {
		t.Errorf("%d lines say that nobody reads it\n%s", len(lines), s.Log)
	}
}

// A message over the limit is none of ours, and the next one is.
func TestM_13_PacketSize(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("t", 1), servicetest.Always(nil))
	s.Start()
	s.put("t", strings.Repeat("x", 2<<20), 1)
	s.put("t", "small", 1)
	servicetest.Expect(t, "runs", s.Handled(1), "t 1 small")
	s.stop()
	if lost := s.Log.Lines("no connection"); len(lost) > 0 {
		t.Errorf("logged %q", lost)
	}
}

// What a session has kept is handled by the next service, and what nobody reads
// any more blocks nothing.
func TestM_14_BeforeTheHandlerExists(t *testing.T) {
	t.Parallel()
	const n, places = 50, 5
	set := func(s *settings.Settings) {
		keptSession(s)
		s.ReceiveMaximum = places
	}
	b := mosquitto.Start(t, mosquitto.Config{})
	life := func(topics []string, want int, left int) {
		t.Helper()
		s := newServiceAt(t, b, rowOptions{set: set})
		for _, topic := range topics {
			s.Handle(s.reads(topic, 1), servicetest.Always(nil))
		}
		s.Start()
		s.Handled(want)
		if left > 0 {
			s.Eventually("what is left over is told", func() bool { return s.Log.Coded("L-HELD") > 0 })
		}
		s.Stop()
	}
	both := []string{"t", "gone"}
	life(both, 0, 0)
	for _, topic := range both {
		b.PublishAll(mosquitto.Message{Topic: topic, QoS: 1}, numbers(n)...)
	}
	life(both, 2*n, 0)
	for _, topic := range []string{"gone", "t"} {
		b.PublishAll(mosquitto.Message{Topic: topic, QoS: 1}, numbers(n)...)
	}
	life([]string{"t"}, n, n)
}
