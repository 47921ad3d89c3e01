// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// held is a service behind a proxy, with a subscription to t whose first runs
// wait for the test.
type held struct {
	*service
	p    *proxy.Proxy
	goOn chan error // what the first runs say, when they do
}

// hold returns such a service, with the first of its runs under way; runs after
// those that wait say what then does.
func hold(t *testing.T, set func(*settings.Settings), waiting int32, then error, rules ...host.Rule) *held {
	t.Helper()
	b := mosquitto.Start(t, mosquitto.Config{Persistent: true})
	h := &held{p: proxy.Start(t, b.Address()), goOn: make(chan error, 1)}
	var runs atomic.Int32
	h.service = newServiceAt(t, b, rowOptions{set: func(s *settings.Settings) {
		if set != nil {
			set(s)
		}
		s.URL = settings.URL(h.p.URL())
	}})
	h.Handle(h.reads("t", 1), func(*host.Message[[]byte]) error {
		if runs.Add(1) <= waiting {
			return <-h.goOn
		}
		return then
	}, rules...)
	h.Start()
	h.put("t", "x", 1)
	servicetest.Expect(t, "runs", h.Ran(1), "t 1 x")
	return h
}

// lost cuts the connection and waits until the service has seen it; none is made
// until back.
func (h *held) lost() {
	h.t.Helper()
	h.p.Refuse()
	h.p.Cut()
	h.Eventually("the loss is seen", func() bool { return len(h.Log.Lines("level=WARN", "endpoint=in", "no connection", "reason=")) > 0 })
}

// back lets the service connect, and waits until its session is there.
func (h *held) back(session string) {
	h.t.Helper()
	h.p.Resume()
	h.Eventually("it is connected again", func() bool { return len(h.Log.Lines("MQTT connected again: session "+session)) > 0 })
}

// A server that refuses the service for good ends it. What comes back to the next
// one is not copied, and of what does not the copy is lost.
func TestS_MQT_24(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set   func(*settings.Settings)
		codes map[string]int
	}{
		"session kept": {keptSession, nil},
		"else":         {nil, map[string]int{"L-LOST": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			h := hold(t, tt.set, 1, nil, host.MaxAttempts(2))
			h.b.Stop()
			h.b.Configure(mosquitto.Config{Persistent: true, Users: map[string]string{"ann": "secret"}})
			h.b.Start()
			h.Eventually("it is told", func() bool { return len(h.Log.Lines("host stops")) > 0 })
			h.goOn <- host.Retry(nil)
			e, ok := errors.AsType[*host.EndpointError](h.Wait())
			if !ok || e.Endpoint != "in" {
				t.Fatalf("the host ended with %v\n%s", h.Wait(), h.Log)
			}
			h.sent()
			h.codes(tt.codes)
			if tt.codes != nil {
				return
			}
			h.b.Stop()
			h.b.Configure(mosquitto.Config{Persistent: true})
			h.b.Start()
			runs, marks := again(t, h.b, 1, 1)
			servicetest.Expect(t, "runs after a restart", runs, "t 1 x")
			servicetest.Expect(t, "marks", marks, "true")
		})
	}
}

// Whether the handler ends while there is no connection or after: what comes
// again by itself is not copied, and what does not is copied once.
func TestS_MQT_25(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"it ends without a connection": true, "it ends on the next connection": false} {
		t.Run(name, func(t *testing.T) {
			during := func(h *held, session string) {
				h.lost()
				if early {
					h.goOn <- host.Retry(nil)
				}
				h.back(session)
				if !early {
					h.goOn <- host.Retry(nil)
				}
			}
			t.Run("session resumes", func(t *testing.T) {
				h := hold(t, keptSession, 1, nil, host.MaxAttempts(2))
				during(h, "resumed")
				servicetest.Expect(t, "runs", h.Ran(1), "t 1 x")
				h.stop()
				h.sent("out PUBACK #1")
				h.inOrder("in PUBLISH t q1 #1", "in PUBLISH t q1 dup #1", "out PUBACK #1")
				h.codes(nil)
			})
			t.Run("new session", func(t *testing.T) {
				h := hold(t, nil, 1, nil, host.MaxAttempts(2))
				during(h, "lost")
				servicetest.Expect(t, "runs", h.Ran(1), "t 2 x")
				h.stop()
				h.sent("out PUBLISH t q1 @1", "out PUBACK #1") // the ack is the copy's
				h.codes(nil)
			})
		})
	}
}

// The ack of a delivery whose connection is gone settles no other one, with the
// same packet id.
func TestS_MQT_25_late(t *testing.T) {
	t.Parallel()
	h := hold(t, nil, 1, host.Leave(), host.MaxAttempts(2), host.Workers(2))
	h.lost()
	h.back("lost")
	h.put("t", "stranger", 1)
	servicetest.Expect(t, "runs", h.Ran(1), "t 1 stranger")
	h.goOn <- nil
	h.Settlement()
	h.stop()
	if n := h.passed("in PUBLISH t q1 #1"); n != 2 {
		t.Errorf("%d deliveries have this packet id", n)
	}
	h.sent()
	h.codes(nil)
}

// fails is a service whose handler panics, which ends it.
func fails(t *testing.T, set func(*settings.Settings)) *service {
	t.Helper()
	s := newService(t, rowOptions{set: set})
	s.Handle(s.reads("t", 1), func(*host.Message[[]byte]) error { panic("broken") }, host.OnPanic(host.FailFast))
	s.Start()
	s.put("t", "x", 1)
	if _, ok := errors.AsType[*host.HandlerError](s.Wait()); !ok {
		t.Fatalf("the host ended with %v", s.Wait())
	}
	servicetest.Expect(t, "runs", s.Ran(1), "t 1 x")
	s.b.Await(1, "Received DISCONNECT from "+clientID)
	s.sent()
	s.codes(map[string]int{"L-PAN": 1, "L-FF": 1})
	return s
}

func TestS_MQT_29(t *testing.T) {
	t.Parallel()
	s := fails(t, keptSession)
	runs, marks := again(t, s.b, 1, 1)
	servicetest.Expect(t, "runs after a restart", runs, "t 1 x")
	servicetest.Expect(t, "marks", marks, "true")
}

func TestS_MQT_30(t *testing.T) {
	t.Parallel()
	s := fails(t, nil)
	next := newServiceAt(t, s.b, rowOptions{})
	next.Handle(next.reads("t", 1), servicetest.Always(nil))
	next.Start()
	next.put("t", "next", 1)
	servicetest.Expect(t, "runs after a restart", next.Handled(1), "t 1 next")
	next.Stop()
}

// A delivery that was left comes again as it was: resumes are not counted.
func TestS_MQT_38(t *testing.T) {
	t.Parallel()
	h := hold(t, keptSession, 2, nil, host.MaxAttempts(3))
	h.goOn <- host.Leave()
	h.Eventually("it is released", func() bool { return h.Health().Endpoints[0].Subscriptions[0].Counters.Released == 1 })
	h.lost()
	h.back("resumed")
	servicetest.Expect(t, "runs", h.Ran(1), "t 1 x")
	h.goOn <- host.Retry(nil)
	servicetest.Expect(t, "runs", h.Ran(1), "t 2 x")
	h.stop()
	h.inOrder("in PUBLISH t q1 #1", "in PUBLISH t q1 dup #1", "out PUBLISH t q1 @1", "in PUBACK @1", "out PUBACK #1")
	h.codes(nil)
}

// A publish returns when the server has answered for good, over a connection that
// is lost before that, and a stop right behind it loses nothing.
func TestS_MQT_43(t *testing.T) {
	t.Parallel()
	for qos, end := range map[int]int{1: proxy.Puback, 2: proxy.Pubcomp} {
		t.Run(fmt.Sprint("QoS ", qos), func(t *testing.T) {
			const n = 500
			b := mosquitto.Start(t, mosquitto.Config{})
			p := proxy.Start(t, b.Address())
			q := b.Subscribe(2, []string{"q"})
			s := newServiceAt(t, b, rowOptions{host: []host.Option{host.StayUp()}, set: func(s *settings.Settings) {
				keptSession(s)
				s.URL = settings.URL(p.URL())
			}})
			to := host.To[[]byte](s.Host, s.in.To("q"))
			s.Start()
			p.CutAt(proxy.ToClient, end, 1, proxy.Before)
			r, err := to.Publish(t.Context(), []byte("first"), host.WithOptions(settings.PublishOptions{QoS: new(qos)}))
			if err != nil || r.Unrouted {
				t.Fatalf("published: %+v, %v", r, err)
			}
			if p.Accepted() != 2 {
				t.Errorf("it has returned on connection %d, before the answer", p.Accepted())
			}
			want := []string{"q first"}
			if qos == 1 {
				want = append(want, "q first") // it is sent again
			}
			var all []*host.Pending
			for i := range n {
				payload := fmt.Sprint(i)
				want = append(want, "q "+payload)
				pending, err := to.PublishAsync(t.Context(), []byte(payload), host.WithOptions(settings.PublishOptions{QoS: new(qos)}))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, pending)
			}
			s.Stop()
			for _, pending := range all {
				if _, err := pending.Receipt(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			servicetest.Expect(t, "arrived", q.Rest(), want...)
		})
	}
}
