// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// acked checks that n deliveries of QoS 1 or 2 are acked, each once, and nothing
// else is sent.
func (s *service) acked(qos, n int) {
	s.t.Helper()
	if got := s.passed(ackOf(qos)); got != n || s.passed("out PUBLISH") > 0 {
		s.t.Errorf("%d acks and %d publishes, want %d and none", got, s.passed("out PUBLISH"), n)
	}
	for i := range n {
		s.inOrder(fmt.Sprintf("in PUBLISH t q%d #%d", qos, i+1), fmt.Sprintf("%s #%d", ackOf(qos), i+1))
		if qos == 2 {
			s.inOrder(fmt.Sprintf("out PUBREC #%d", i+1), fmt.Sprintf("in PUBREL #%d", i+1), fmt.Sprintf("out PUBCOMP #%d", i+1))
		}
	}
}

// settled is a service whose deliveries end with what is said, whatever is
// declared.
func settled(t *testing.T, qos int, says error) {
	t.Helper()
	const n = 20
	s := row(t, qos, says, toQ(host.MaxAttempts(2)))
	for i := range n {
		s.put("t", fmt.Sprint(i), qos, attempted(1+i%2)...)
	}
	s.Handled(n)
	if qos == 2 { // an end of the service does not wait for the broker's part of the last one
		eventually(t, "all are complete", func() bool { return s.passed("out PUBCOMP") == n })
	}
	s.stop()
	s.acked(qos, n)
	servicetest.Expect(t, "elsewhere", s.q.Rest())
	s.Log.Silent(t)
}

func TestS_MQT_01(t *testing.T) {
	t.Parallel()
	settled(t, 1, nil)
}

func TestS_MQT_02(t *testing.T) {
	t.Parallel()
	settled(t, 2, nil)
}

func TestS_MQT_03(t *testing.T) {
	t.Parallel()
	qualities(t, []int{1, 2}, func(t *testing.T, qos int) { settled(t, qos, host.Drop(nil)) })
}

func TestS_MQT_04(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says  error
		rules func(*service) []host.Rule
		n     int
	}{
		"ack": {nil, toQ(host.MaxAttempts(2)), 20}, "drop": {host.Drop(nil), toQ(host.MaxAttempts(2)), 20}, "retry": {host.Retry(nil), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := row(t, 0, tt.says, tt.rules)
			for range tt.n {
				s.put("t", "x", 0)
			}
			s.Handled(tt.n)
			s.stop()
			s.sent()
			servicetest.Expect(t, "elsewhere", s.q.Rest())
			s.once("L-UNS")
			if tt.n == 1 {
				s.codes(map[string]int{"L-UNS": 1})
			}
		})
	}
}

// again is what a service gets under the same client id once another one has
// ended: it starts, and every delivery is acked.
func again(t *testing.T, b *mosquitto.Broker, qos, n int) (runs []string, marks []string) {
	t.Helper()
	s := newServiceAt(t, b, rowOptions{set: keptSession})
	s.Handle(s.reads("t", qos), func(m *host.Message[[]byte]) error {
		marks = append(marks, m.Header("mqtt-redelivered"))
		return nil
	})
	s.Start()
	runs = s.Handled(n)
	s.Stop()
	return runs, marks
}

// A plain retry leaves the delivery unacked and nobody else's: its credit
// returns, and it comes again where the session is resumed.
func TestS_MQT_05(t *testing.T) {
	t.Parallel()
	qualities(t, []int{1, 2}, func(t *testing.T, qos int) {
		s := newService(t, rowOptions{set: keptSession})
		s.Handle(s.reads("t", qos, host.Window(1, 1<<20)), func(m *host.Message[[]byte]) error {
			if string(m.Value) == "x" {
				return host.Retry(nil)
			}
			return nil
		})
		s.Start()
		s.put("t", "x", qos)
		servicetest.Expect(t, "runs", s.Handled(1), "t 1 x")
		s.put("t", "next", qos)
		servicetest.Expect(t, "runs", s.Handled(1), "t 1 next")
		s.stop()
		s.inOrder(fmt.Sprintf("in PUBLISH t q%d #1", qos), fmt.Sprintf("in PUBLISH t q%d #2", qos), ackOf(qos)+" #2")
		if n := s.passed(ackOf(qos) + " #1"); n > 0 {
			t.Errorf("it is acked: %q", s.trace())
		}
		s.codes(map[string]int{"L-UNS": 1})
		runs, marks := again(t, s.b, qos, 1)
		servicetest.Expect(t, "runs after a restart", runs, "t 1 x")
		servicetest.Expect(t, "marks", marks, "true")
	})
}

// Each that is left takes one of the places that the server fills.
func TestS_MQT_06(t *testing.T) {
	t.Parallel()
	const places = 3
	s := newService(t, rowOptions{set: func(s *settings.Settings) { s.ReceiveMaximum = places }})
	s.Handle(s.reads("t", 1), servicetest.Always(host.Retry(nil)))
	s.Start()
	for i := range places {
		s.put("t", fmt.Sprint(i), 1)
	}
	servicetest.Expect(t, "runs", s.Handled(places), "t 1 0", "t 1 1", "t 1 2")
	s.put("t", "waits at the broker", 1)
	s.put("t", "of QoS 0", 0)
	servicetest.Expect(t, "runs", s.Handled(1), "t 1 of QoS 0")
	s.stop()
	if n := s.passed("in PUBLISH t q1"); n != places {
		t.Errorf("%d deliveries", n)
	}
	s.sent()
	s.once("L-UNS")
}

// delay is how long a retry waits in tests of that.
const delay = 300 * time.Millisecond

// times are when a handler has run.
type times []time.Time

// retriesOnce sets a handler that asks for one retry after the delay. It may be
// looked at when the service has ended.
func (s *service) retriesOnce(sub *host.Subscription) *times {
	ran := new(times)
	says := untilAttempt(2, host.RetryAfter(delay, nil))
	s.Handle(sub, func(m *host.Message[[]byte]) error {
		*ran = append(*ran, time.Now())
		return says(m)
	})
	return ran
}

// apart checks that the runs were a delay apart at least.
func (ran times) apart(t *testing.T) {
	t.Helper()
	for i := range ran[1:] {
		if after := ran[i+1].Sub(ran[i]); after < delay {
			t.Errorf("the copy came after %v", after)
		}
	}
}

func TestS_MQT_07(t *testing.T) {
	t.Parallel()
	qualities(t, []int{1, 2}, func(t *testing.T, qos int) {
		s := newService(t, rowOptions{})
		times := s.retriesOnce(s.reads("t", qos))
		s.Start()
		s.put("t", `{"id":7}`, qos)
		servicetest.Expect(t, "runs", s.Ran(2), `t 1 {"id":7}`, `t 2 {"id":7}`)
		s.stop()
		times.apart(t)
		s.inOrder(fmt.Sprintf("in PUBLISH t q%d #1", qos), ackOf(qos)+" #1", fmt.Sprintf("out PUBLISH t q%d @1", qos), doneOf(qos)+" @1")
		s.codes(nil)
	})
}

func TestS_MQT_08(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	times := s.retriesOnce(s.reads("t", 0))
	s.Start()
	s.put("t", "x", 0)
	servicetest.Expect(t, "runs", s.Ran(2), "t 1 x", "t 2 x")
	s.stop()
	times.apart(t)
	s.sent("out PUBLISH t q1 @1")
	s.once("L-UNS") // of the ack of attempt 2
}

// A handler that says nothing: nothing is sent, and nothing is said of it.
func TestS_MQT_36(t *testing.T) {
	t.Parallel()
	qualities(t, []int{0, 1, 2}, func(t *testing.T, qos int) {
		s := newService(t, rowOptions{set: keptSession})
		s.Handle(s.reads("t", qos), servicetest.Always(host.Leave()), host.MaxAttempts(3))
		s.Start()
		s.put("t", "x", qos)
		servicetest.Expect(t, "runs", s.Ran(1), "t 1 x")
		s.Eventually("it is released", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.Released == 1 })
		s.stop()
		s.sent()
		s.Log.Silent(t)
		if qos == 0 {
			again := newServiceAt(t, s.b, rowOptions{set: keptSession})
			again.Handle(again.reads("t", 0), servicetest.Always(nil))
			again.Start()
			s.put("t", "last", 0)
			servicetest.Expect(t, "runs after a restart", again.Handled(1), "t 1 last")
			again.Stop()
			return
		}
		runs, marks := again(t, s.b, qos, 1)
		servicetest.Expect(t, "runs after a restart", runs, "t 1 x")
		servicetest.Expect(t, "marks", marks, "true")
	})
}

// Where no session is kept, what is left is lost when the connection ends, which
// is said when the service starts.
func TestS_MQT_37(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  func(*settings.Settings)
		says error
		uns  int
	}{
		"retry, the defaults":   {nil, host.Retry(nil), 1},
		"none, the defaults":    {nil, host.Leave(), 0},
		"retry, clean start on": {func(s *settings.Settings) { s.SessionExpiry = core.Duration(time.Hour) }, host.Retry(nil), 1},
		"retry, no expiry":      {func(s *settings.Settings) { s.CleanStart = new(false) }, host.Retry(nil), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, rowOptions{set: tt.set})
			s.Handle(s.reads("t", 1), servicetest.Always(tt.says))
			s.Start()
			s.put("t", "x", 1)
			s.Ran(1)
			s.Eventually("it is settled", func() bool {
				c := s.Health().Endpoints[0].Subscriptions[0].Counters
				return c.Received == 1 && c.InWork == 0
			})
			s.stop()
			s.sent()
			s.codes(map[string]int{"L-UNS": tt.uns})
			if lines := s.Log.Lines("level=INFO", "subscription=t", "not promised to come again"); len(lines) != 1 {
				t.Errorf("%d lines say what is lost\n%s", len(lines), s.Log)
			}
			explained(t, tt.set, "unsettled deliveries are lost")
			next := newServiceAt(t, s.b, rowOptions{set: tt.set})
			next.Handle(next.reads("t", 1), servicetest.Always(nil))
			next.Start()
			s.put("t", "next", 1)
			servicetest.Expect(t, "runs after a restart", next.Handled(1), "t 1 next")
			next.Stop()
		})
	}
}

// explained checks what Explain says of a subscription of QoS 1.
func explained(t *testing.T, set func(*settings.Settings), text string) {
	t.Helper()
	s := &service{Service: servicetest.New(t), t: t}
	settings := settings.Settings{URL: "mqtt://127.0.0.1:1", ClientID: clientID}
	if set != nil {
		set(&settings)
	}
	s.in = s.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, settings)
	s.Handle(s.reads("t", 1), servicetest.Always(nil))
	tables, err := s.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(tables[0].String(), "its deliveries of profile 1")
	if !strings.Contains(first, text) {
		t.Errorf("explained as\n%s", first)
	}
}

func TestExplainOfAKeptSession(t *testing.T) {
	t.Parallel()
	explained(t, keptSession, "unsettled deliveries return on resume")
}

// What is left keeps the server's place and gives the host's back.
func TestS_MQT_44(t *testing.T) {
	t.Parallel()
	const n = 65
	s := newService(t, rowOptions{})
	s.Handle(s.reads("t", 1, host.Window(64, 1<<20)), servicetest.Always(host.Leave()))
	s.Start()
	var payloads, want []string
	for i := range n {
		payloads, want = append(payloads, fmt.Sprint(i)), append(want, fmt.Sprintf("t 1 %d", i))
	}
	s.b.PublishAll(mosquitto.Message{Topic: "t", QoS: 1}, payloads...)
	servicetest.Expect(t, "runs", s.Ran(n), want...)
	s.stop()
	s.sent()
	s.Log.Silent(t)
}
