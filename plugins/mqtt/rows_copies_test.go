// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// copiedFirst checks that the first delivery is acked after the broker has its
// copy, or dead letter, on a topic.
func (s *service) copiedFirst(from, topic string, qos int) {
	s.t.Helper()
	s.inOrder(fmt.Sprintf("in PUBLISH %s q%d #1", from, qos), fmt.Sprintf("out PUBLISH %s q%d @1", topic, qos), doneOf(qos)+" @1", ackOf(qos)+" #1")
}

func TestS_MQT_09(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("t", 1), untilAttempt(3, host.Retry(nil)), host.MaxAttempts(3))
	s.Start()
	s.put("t", "x", 1)
	servicetest.Expect(t, "runs", s.Handled(3), "t 1 x", "t 2 x", "t 3 x")
	s.stop()
	s.copiedFirst("t", "t", 1)
	if n := s.passed("out PUBLISH t q1"); n != 2 {
		t.Errorf("%d copies", n)
	}
	s.codes(nil)
}

func TestS_MQT_10(t *testing.T) {
	t.Parallel()
	s := row(t, 1, host.Retry(nil), cap3)
	s.put("t", "x", 1, attempted(3)...)
	servicetest.Expect(t, "runs", s.Handled(1), "t 3 x")
	s.stop()
	s.sent("out PUBACK #1")
	s.codes(map[string]int{"L-CAP-RJ": 1})
}

func TestS_MQT_11(t *testing.T) {
	t.Parallel()
	s := row(t, 0, host.Retry(nil), cap3)
	s.put("t", "x", 0, attempted(3)...)
	servicetest.Expect(t, "runs", s.Handled(1), "t 3 x")
	s.stop()
	s.sent()
	s.codes(map[string]int{"L-CAP-RJ": 1})
}

func TestS_MQT_12(t *testing.T) {
	t.Parallel()
	s := row(t, 1, host.Retry(nil), toQ(host.MaxAttempts(3)))
	s.put("t", "x", 1, append([]string{"Tenant", "a", "b", "1", "tenant", "c", "b", "2"}, attempted(3)...)...)
	servicetest.Expect(t, "runs", s.Handled(1), "t 3 x")
	s.stop()
	servicetest.Expect(t, "dead letters", shape(t, s.q.Rest()), deadLetter("t", "x", 3, 3, " Tenant=a b=1 tenant=c b=2"))
	s.copiedFirst("t", "q", 1)
	s.codes(map[string]int{"L-CAP-DL": 1})
}

func TestS_MQT_13(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]error{"retry": host.Retry(nil), "retry after": host.RetryAfter(time.Hour, nil)} {
		t.Run(name, func(t *testing.T) {
			s := row(t, 1, says, toQ())
			s.put("t", "x", 1)
			servicetest.Expect(t, "runs", s.Handled(1), "t 1 x")
			s.stop()
			servicetest.Expect(t, "dead letters", shape(t, s.q.Rest()), deadLetter("t", "x", 1, 1, ""))
			s.copiedFirst("t", "q", 1)
			s.codes(nil)
		})
	}
}

// A copy is delivered with the same QoS and for as long as the original would
// have been, and does not take its place as what is retained.
func TestS_MQT_14(t *testing.T) {
	t.Parallel()
	const expiry, work = 600, 1100 * time.Millisecond
	s := newService(t, rowOptions{})
	s.b.Publish(mosquitto.Message{Topic: "t", Payload: []byte("x"), QoS: 2, Retain: true, Expiry: expiry})
	beside := s.b.Subscribe(2, []string{"t"})
	if m := beside.Messages(1)[0]; !m.Retain || m.String() != "t x" {
		t.Fatalf("retained is %+v", m)
	}
	s.Handle(s.reads("t", 2), func(m *host.Message[[]byte]) error {
		if m.Attempt() > 1 {
			return nil
		}
		if m.Header("mqtt-retained") != "true" {
			t.Errorf("headers %v", m.Headers())
		}
		time.Sleep(work) // which the copy is not worth any more
		return host.Retry(nil)
	}, host.MaxAttempts(3))
	s.Start()
	servicetest.Expect(t, "runs", s.Handled(2), "t 1 x", "t 2 x")
	s.stop()
	s.inOrder("in PUBLISH t q2 retain #1", "out PUBLISH t q2 @1", "in PUBCOMP @1", "out PUBREC #1")
	m := beside.Messages(1)[0]
	if m.String() != copied("t", "x", 1) || m.QoS != 2 || m.Retain {
		t.Errorf("the copy is %+v", m)
	}
	if left := expiry - int(work/time.Second); m.Expiry < expiry/2 || m.Expiry > uint32(left) {
		t.Errorf("the copy expires in %d s, want at most %d", m.Expiry, left)
	}
	if m := s.b.Subscribe(2, []string{"t"}).Messages(1)[0]; m.String() != "t x" {
		t.Errorf("retained is %+v", m)
	}
	s.codes(nil)
}

func TestS_MQT_15(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	beside := s.b.Subscribe(1, []string{"t"})
	s.Handle(s.reads("t", 1), untilAttempt(2, host.Retry(nil)), host.MaxAttempts(3))
	s.Start()
	s.put("t", "x", 1)
	servicetest.Expect(t, "runs", s.Handled(2), "t 1 x", "t 2 x")
	s.stop()
	s.copiedFirst("t", "t", 1)
	servicetest.Expect(t, "beside", beside.Rest(), "t x", copied("t", "x", 1))
	s.codes(nil)
}

// The copy of a shared topic goes to the plain topic: every group has it, and one
// member of each.
func TestS_MQT_16(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	others, plain := s.b.Subscribe(1, []string{"$share/h/t"}), s.b.Subscribe(1, []string{"t"})
	sub := s.in.Subscription("t", host.Options(settings.SubscribeOptions{Group: "g"}))
	s.Handle(sub, untilAttempt(2, host.Retry(nil)), host.MaxAttempts(3))
	s.Start()
	s.b.Await(1, clientID+" 1 $share/g/t")
	s.put("t", "x", 1)
	servicetest.Expect(t, "runs", s.Handled(2), "t 1 x", "t 2 x")
	s.stop()
	s.copiedFirst("t", "t", 1)
	for name, end := range map[string]*mosquitto.Subscriber{"another group": others, "a plain subscriber": plain} {
		servicetest.Expect(t, name, end.Rest(), "t x", copied("t", "x", 1))
	}
	s.codes(nil)
}

// The names of filters' deliveries are their topics.
func TestS_MQT_18(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.filters("a/+", ""), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2),
		host.RetryToFunc(func(m core.Message, attempt uint64) (core.Destination, error) {
			if attempt != 1 {
				t.Errorf("asked for attempt %d", attempt)
			}
			return s.in.To(m.Name), nil
		}))
	s.Start()
	s.put("a/x", "1", 1)
	servicetest.Expect(t, "runs", s.Handled(2), "a/x 1 1", "a/x 2 1")
	s.stop()
	s.copiedFirst("a/x", "a/x", 1)
	s.codes(map[string]int{"L-CAP-RJ": 1})
}

func TestS_MQT_19(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	b := s.b.Subscribe(1, []string{"b"})
	s.Handle(s.filters("a/#", ""), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2), host.RetryTo(s.in.To("b")))
	s.Start()
	s.put("a/x/y", "1", 1)
	servicetest.Expect(t, "runs", s.Handled(1), "a/x/y 1 1")
	s.stop()
	s.copiedFirst("a/x/y", "b", 1)
	servicetest.Expect(t, "b", b.Rest(), copied("b", "1", 1))
	s.codes(nil)
}

// Names that a function gives are looked at when it gives them.
func TestS_MQT_23(t *testing.T) {
	t.Parallel()
	for name, topic := range map[string]string{"empty": "", "a wildcard": "a/+/b", "the other": "a/#", "a control character": "a\nb", "U+0000": "a\x00b"} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, rowOptions{})
			s.Handle(s.reads("t", 1), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2),
				host.RetryToFunc(func(core.Message, uint64) (core.Destination, error) { return s.in.To(topic), nil }))
			s.Start()
			s.put("t", "x", 1)
			servicetest.Expect(t, "runs", s.Handled(1), "t 1 x")
			s.stop()
			s.sent("out PUBACK #1")
			s.codes(map[string]int{"L-REF": 1})
		})
	}
}

// The properties of a message are those of its copy.
func TestS_MQT_32(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	beside := s.b.Subscribe(1, []string{"t"})
	s.Handle(s.reads("t", 1), untilAttempt(2, host.Retry(nil)), host.MaxAttempts(2))
	s.Start()
	sent := mosquitto.Message{
		Topic: "t", Payload: []byte(`{"id":7}`), QoS: 1, ContentType: "application/json", ResponseTopic: "re/ply", Correlation: "c0",
		Properties: []mosquitto.Property{{Name: "b", Value: "1"}, {Name: "A", Value: ""}, {Name: "b", Value: "2"}},
	}
	s.b.Publish(sent)
	servicetest.Expect(t, "runs", s.Handled(2), `t 1 {"id":7}`, `t 2 {"id":7}`)
	s.stop()
	s.copiedFirst("t", "t", 1)
	got := beside.Messages(2)[1]
	sent.Properties = append(sent.Properties, mosquitto.Property{Name: "x-ruststream-retry-count", Value: "1"})
	if got.String() != sent.String() || !slices.Equal(got.Properties, sent.Properties) || !got.Text {
		t.Errorf("the copy is %+v, want %+v", got, sent)
	}
	s.codes(nil)
}

func TestS_MQT_34(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	beside := s.b.Subscribe(2, []string{"t"})
	s.Handle(s.reads("t", 0), func(m *host.Message[[]byte]) error {
		if m.Attempt() > 1 {
			return host.Leave()
		}
		return host.Retry(nil)
	}, host.MaxAttempts(3))
	s.Start()
	s.put("t", "x", 0)
	servicetest.Expect(t, "runs", s.Ran(2), "t 1 x", "t 2 x")
	s.stop()
	s.sent("out PUBLISH t q1 @1")
	servicetest.Expect(t, "beside", beside.Rest(), "t x", copied("t", "x", 1))
	s.codes(nil)
}

func TestS_MQT_35(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]error{"retry": host.Retry(nil), "retry after": host.RetryAfter(time.Hour, nil)} {
		t.Run(name, func(t *testing.T) {
			s := row(t, 0, says, toQ())
			s.put("t", "x", 0)
			servicetest.Expect(t, "runs", s.Handled(1), "t 1 x")
			s.stop()
			s.sent("out PUBLISH q q1 @1")
			servicetest.Expect(t, "dead letters", shape(t, s.q.Rest()), deadLetter("t", "x", 1, 1, ""))
			s.codes(nil)
		})
	}
}

// The cap comes first, at once.
func TestS_MQT_45(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("t", 1), func(m *host.Message[[]byte]) error {
		if m.Attempt() == 1 {
			return host.RetryAfter(300*time.Millisecond, nil)
		}
		return host.RetryAfter(time.Hour, nil)
	}, host.MaxAttempts(2))
	s.Start()
	s.put("t", "x", 1)
	servicetest.Expect(t, "runs", s.Handled(2), "t 1 x", "t 2 x")
	s.stop()
	s.inOrder("out PUBACK #1", "out PUBLISH t q1 @1", "in PUBACK @1")
	if n := s.passed("out PUBACK"); n != 2 || s.passed("out PUBLISH") != 1 {
		t.Errorf("sent %q", s.trace())
	}
	s.codes(map[string]int{"L-CAP-RJ": 1})
}

// A dead letter may be read by another subscription, which counts on.
func TestS_MQT_46(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("a/b", 1), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2), host.DeadLetterTo(s.in.To("q")))
	s.Handle(s.reads("q", 1), servicetest.Always(nil))
	s.Start()
	s.put("a/b", "x", 1, attempted(2)...)
	servicetest.Expect(t, "runs", s.Handled(2), "a/b 2 x", "q 3 x")
	s.stop()
	s.copiedFirst("a/b", "q", 1)
	if n := s.passed("out PUBACK"); n != 2 {
		t.Errorf("%d acks", n)
	}
	s.codes(map[string]int{"L-CAP-DL": 1})
	if lines := s.Log.Lines("code=L-CHECK", "option=DeadLetterTo"); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
}
