// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// A server that sends one packet for each filter gets an ack for each.
func TestS_MQT_26(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	s.Handle(s.reads("a/b", 1), servicetest.Always(nil))
	s.Handle(s.filters("a/#", ""), servicetest.Always(nil), host.RetryTo(s.in.To("r")))
	s.Start()
	s.put("a/b", "x", 1)
	servicetest.Expect(t, "runs", s.Handled(2), "a/b 1 x", "a/b 1 x")
	s.stop()
	s.inOrder("in PUBLISH a/b q1 #1", "out PUBACK #1")
	s.inOrder("in PUBLISH a/b q1 #2", "out PUBACK #2")
	s.codes(nil)
}

// What a topic's subscription copies to it, the filter reads as well, with the
// same count.
func TestS_MQT_39(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	var filter []string
	s.Handle(s.reads("a/b", 1), untilAttempt(2, host.Retry(nil)), host.MaxAttempts(3))
	s.Handle(s.filters("a/#", ""), func(m *host.Message[[]byte]) error {
		filter = append(filter, servicetest.Text(m.Name(), m.Payload(), m.Headers()))
		return nil
	}, host.RetryTo(s.in.To("r")))
	s.Start()
	s.put("a/b", "x", 1)
	servicetest.Expect(t, "runs", slices.Sorted(slices.Values(s.Handled(4))), "a/b 1 x", "a/b 1 x", "a/b 2 x", "a/b 2 x")
	s.stop()
	servicetest.Expect(t, "what the filter reads", filter, "a/b x", copied("a/b", "x", 1))
	if n := s.passed("out PUBLISH"); n != 1 {
		t.Errorf("%d copies", n)
	}
	if n := s.passed("out PUBACK"); n != 4 {
		t.Errorf("%d acks", n)
	}
	s.codes(nil)
}

// merged is a service at a server that sends one packet for all filters, naming
// their identifiers. Its handlers wait for the test.
type merged struct {
	*servicetest.Service
	far  *embedded
	p    *proxy.Proxy
	x, y chan error
}

func newMerged(t *testing.T) *merged {
	t.Helper()
	m := &merged{Service: servicetest.New(t), far: embed(t, false), x: make(chan error), y: make(chan error)}
	m.p = proxy.Start(t, m.far.address)
	set := settings.Settings{URL: settings.URL(m.p.URL()), ClientID: clientID}
	keptSession(&set)
	in := m.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, set)
	m.Handle(in.Subscription("a/b"), func(*host.Message[[]byte]) error { return <-m.x })
	m.Handle(in.Subscription("a/#", host.Options(settings.SubscribeOptions{Filter: true})), func(*host.Message[[]byte]) error { return <-m.y },
		host.RetryTo(in.To("r")))
	m.Start()
	m.far.publish("a/b", "x")
	servicetest.Expect(t, "runs", m.Ran(2), "a/b 1 x", "a/b 1 x")
	m.p.Await(proxy.ToClient, proxy.Publish, 1)
	if n := m.p.Count(proxy.ToClient, proxy.Publish); n != 1 {
		t.Fatalf("the server sends %d packets", n)
	}
	return m
}

// Both handlers of one packet run, and it is acked when both have ended.
func TestS_MQT_40(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	m.x <- nil
	m.Settlement()
	if n := m.p.Count(proxy.ToServer, proxy.Puback); n != 0 {
		t.Errorf("%d acks while a handler runs", n)
	}
	m.y <- nil
	m.Settlement()
	m.Stop()
	if n := m.p.Count(proxy.ToServer, proxy.Puback); n != 1 {
		t.Errorf("%d acks", n)
	}
	m.Log.Silent(t)
}

// What one of two handlers leaves is not acked, and comes again to both.
func TestS_MQT_42(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	m.x <- nil
	m.Settlement()
	m.y <- host.Leave()
	m.Eventually("it is released", func() bool {
		for _, s := range m.Health().Endpoints[0].Subscriptions {
			if s.Counters.Released == 1 {
				return true
			}
		}
		return false
	})
	m.p.Cut()
	servicetest.Expect(t, "runs on the next connection", m.Ran(2), "a/b 1 x", "a/b 1 x")
	if n := m.p.Count(proxy.ToServer, proxy.Puback); n != 0 {
		t.Errorf("%d acks of what was left", n)
	}
	m.x <- nil
	m.y <- nil
	m.Settlement()
	m.Settlement()
	m.Stop()
	if n := m.p.Count(proxy.ToServer, proxy.Puback); n != 1 {
		t.Errorf("%d acks", n)
	}
}

// The copy of one of two handlers goes to both, and the packet that it stems from
// is acked once.
func TestM_09_OverlappingFilters(t *testing.T) {
	t.Parallel()
	m := newMerged(t)
	m.x <- host.RetryAfter(200*time.Millisecond, nil)
	m.y <- nil
	m.Settlement()
	servicetest.Expect(t, "runs of the copy", m.Ran(2), "a/b 2 x", "a/b 2 x")
	m.p.Await(proxy.ToServer, proxy.Puback, 1)
	m.x <- nil
	m.y <- nil
	for range 3 {
		m.Settlement()
	}
	m.Stop()
	if acks, copies := m.p.Count(proxy.ToServer, proxy.Puback), m.p.Count(proxy.ToServer, proxy.Publish); acks != 2 || copies != 1 {
		t.Errorf("%d acks and %d copies, want 2 and 1", acks, copies)
	}
}

// Where a server cannot say which filter a packet is for, filters of one
// connection may not overlap; on connections of their own they may.
func TestS_MQT_27(t *testing.T) {
	t.Parallel()
	far := embed(t, true)
	service := func(connection string) *servicetest.Service {
		s := servicetest.New(t)
		in := s.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, settings.Settings{URL: settings.URL("mqtt://" + far.address), ClientID: clientID})
		s.Handle(in.Subscription("a/b"), servicetest.Always(nil))
		s.Handle(in.Subscription("a/#", host.Options(settings.SubscribeOptions{Filter: true, Connection: connection})), servicetest.Always(nil),
			host.RetryTo(in.To("r")))
		return s
	}
	refused := service("")
	refused.Launch()
	startError(t, refused, "a/b", "a/#", "identifier", "connection")

	s := service("other")
	s.Start()
	far.publish("a/b", "x")
	servicetest.Expect(t, "runs", s.Handled(2), "a/b 1 x", "a/b 1 x")
	s.Stop()
}
