// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// unconnected is a service whose start is refused before anything is dialed.
func unconnected(t *testing.T) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t), t: t}
	s.in = s.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, settings.Settings{URL: "mqtt://127.0.0.1:1", ClientID: clientID})
	return s
}

func TestS_MQT_17(t *testing.T) {
	t.Parallel()
	for name, rs := range map[string][]host.Rule{"a cap": {host.MaxAttempts(2)}, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			s := unconnected(t)
			s.Handle(s.filters("a/+", ""), servicetest.Always(nil), rs...)
			s.Refused("a/+", "RetryTo", "a/+", "RetryTo")
		})
	}
}

func TestS_MQT_20(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sub    func(s *service) *host.Subscription
		reader string
	}{
		"a topic": {func(s *service) *host.Subscription { return s.reads("a/dead", 1) }, "a/dead"},
		"a shared topic": {func(s *service) *host.Subscription {
			return s.in.Subscription("a/dead", host.Options(settings.SubscribeOptions{Group: "g"}))
		}, "a/dead"},
		"a filter":        {func(s *service) *host.Subscription { return s.filters("a/#", "") }, "a/#"},
		"a shared filter": {func(s *service) *host.Subscription { return s.filters("a/+", "g") }, "a/+"},
	} {
		t.Run(name, func(t *testing.T) {
			s := unconnected(t)
			s.Handle(tt.sub(s), servicetest.Always(nil), host.MaxAttempts(2), host.RetryTo(s.in.To("b")), host.DeadLetterTo(s.in.To("a/dead")))
			s.Refused(tt.reader, "DeadLetterTo", "a/dead")
		})
	}
	t.Run("another filter", func(t *testing.T) {
		s := newService(t, rowOptions{})
		s.Handle(s.reads("t", 1), servicetest.Always(nil), host.MaxAttempts(2), host.DeadLetterTo(s.in.To("a/dead")))
		s.Handle(s.filters("a/#", ""), servicetest.Always(nil), host.RetryTo(s.in.To("b")))
		s.Start()
		s.Stop()
		if lines := s.Log.Lines("level=WARN", "code=L-CHECK", "a/dead", "a/#"); len(lines) != 1 {
			t.Errorf("%d lines warn of it\n%s", len(lines), s.Log)
		}
	})
}

func TestS_MQT_21(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a/+", "a/#", "#", "+/b", "a+b", "a#"} {
		t.Run(name, func(t *testing.T) {
			s := unconnected(t)
			s.Handle(s.reads(name, 1), servicetest.Always(nil), host.RetryTo(s.in.To("b")))
			s.Refused(name, "name", name, "filter")
		})
	}
}

func TestS_MQT_22(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"a/b", "a+", "#"} {
		t.Run(group, func(t *testing.T) {
			s := unconnected(t)
			s.Handle(s.in.Subscription("t", host.Options(settings.SubscribeOptions{Group: group})), servicetest.Always(nil))
			s.Refused("t", "group", group)
		})
	}
	t.Run("empty", func(t *testing.T) {
		s := unconnected(t)
		s.Handle(s.in.Subscription("t", host.Options(map[string]any{"group": ""})), servicetest.Always(nil))
		s.Refused("t", "options.group", "empty")
	})
}

// A destination that is declared is looked at when the service starts.
func TestS_MQT_23_declared(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"a/+/b", "#", "a\nb"} {
		for option, rules := range map[string]func(s *service) []host.Rule{
			"RetryTo":      func(s *service) []host.Rule { return []host.Rule{host.MaxAttempts(2), host.RetryTo(s.in.To(topic))} },
			"DeadLetterTo": func(s *service) []host.Rule { return []host.Rule{host.DeadLetterTo(s.in.To(topic))} },
		} {
			t.Run(fmt.Sprintf("%s %q", option, topic), func(t *testing.T) {
				s := unconnected(t)
				s.Handle(s.reads("t", 1), servicetest.Always(nil), rules(s)...)
				s.Refused("t", option)
			})
		}
	}
}

// The same filter twice is subscribed to once, and its subscriptions take turns. A
// service's subscriptions have names of their own, so it asks for that nowhere.
func TestS_MQT_28(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]settings.SubscribeOptions{
		"topic": {}, "shared topic": {Group: "g"}, "filter": {Filter: true}, "shared filter": {Filter: true, Group: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 10
			topic, wire := "t/1", "t/1"
			if o.Filter {
				topic, wire = "t/+", "t/+"
			}
			if o.Group != "" {
				wire = "$share/g/" + topic
			}
			b := mosquitto.Start(t, mosquitto.Config{})
			d := connectAs(t, b.URL(), clientID)
			raw, err := pluginapi.EncodeOptions(o)
			if err != nil {
				t.Fatal(err)
			}
			var both [2]pluginapi.Subscription
			for i := range both {
				if both[i], err = d.conn.Subscribe(d.ctx, pluginapi.Registration{Name: topic, Options: raw}); err != nil {
					t.Fatal(err)
				}
			}
			var payloads []string
			for i := range n {
				payloads = append(payloads, fmt.Sprint(i))
			}
			b.PublishAll(mosquitto.Message{Topic: "t/1", QoS: 1}, payloads...)
			for i, s := range both {
				var got []string
				for len(got) < n/2 {
					batch, err := s.Receive(d.ctx, servicetest.Plenty)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, servicetest.Texts(batch.Deliveries)...)
					if batch.Memory != nil {
						batch.Memory.Release()
					}
				}
				if len(got) != n/2 {
					t.Errorf("subscription %d gets %q", i, got)
				}
			}
			if lines := b.Lines(clientID + " 1 " + wire); len(lines) != 1 {
				t.Errorf("subscribed with %q", lines)
			}
		})
	}
	t.Run("in a service", func(t *testing.T) {
		s := unconnected(t)
		for range 2 {
			s.Handle(s.reads("t", 1), servicetest.Always(nil))
		}
		s.Refused("t", "Subscription", "twice", "endpoint")
	})
}

func TestS_MQT_33(t *testing.T) {
	t.Parallel()
	for name, every := range map[string]time.Duration{"negative": -time.Second, "half a second": 500 * time.Millisecond, "too long": 65536 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := &service{Service: servicetest.New(t), t: t}
			s.in = s.Endpoint("in", host.Plugin{Name: "mqtt", Path: pluginPath(t)}, settings.Settings{
				URL: "mqtt://127.0.0.1:1", ClientID: clientID, KeepAlive: new(core.Duration(every)),
			})
			s.Handle(s.reads("t", 1), servicetest.Always(nil))
			s.Refused("", "settings.keep_alive", "65535")
		})
	}
	for _, every := range []time.Duration{0, time.Second, 65535 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			s := newService(t, rowOptions{set: func(s *settings.Settings) {
				keptSession(s) // a machine that stands still for a second may cost the connection
				s.KeepAlive = new(core.Duration(every))
			}})
			s.Handle(s.reads("t", 1), servicetest.Always(nil))
			s.Start()
			s.put("t", "x", 1)
			servicetest.Expect(t, "runs", s.Handled(1), "t 1 x")
			s.Cancel()
			s.Ended()
		})
	}
}

// Without tls_ca the system's roots decide, which Go looks for where SSL_CERT_FILE
// says.
func TestS_MQT_33_tls(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{TLS: true})
	connects := func() *service {
		s := newServiceAt(t, b, rowOptions{})
		s.Handle(s.reads("t", 1), servicetest.Always(nil))
		return s
	}
	t.Run("known", func(t *testing.T) {
		t.Setenv("SSL_CERT_FILE", b.CA())
		s := connects()
		s.Start()
		s.put("t", "x", 1)
		servicetest.Expect(t, "runs", s.Handled(1), "t 1 x")
		s.stop()
	})
	t.Run("unknown", func(t *testing.T) {
		s := connects()
		s.Launch()
		startError(t, s.Service, "tls_ca", "x509", b.Address())
	})
}

// Only what names one topic is its own destination.
func TestS_MQT_41(t *testing.T) {
	t.Parallel()
	t.Run("no destination", func(t *testing.T) {
		s := unconnected(t)
		s.Handle(s.filters("a/+", "g"), servicetest.Always(nil), host.MaxAttempts(2))
		s.Refused("a/+", "RetryTo", "a/+")
	})
	t.Run("to b", func(t *testing.T) {
		s := newService(t, rowOptions{})
		b := s.b.Subscribe(1, []string{"b"})
		s.Handle(s.filters("a/+", "g"), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2), host.RetryTo(s.in.To("b")))
		s.Start()
		s.put("a/x", "1", 1)
		servicetest.Expect(t, "runs", s.Handled(1), "a/x 1 1")
		s.stop()
		s.copiedFirst("a/x", "b", 1)
		servicetest.Expect(t, "b", b.Rest(), copied("b", "1", 1))
		s.codes(nil)
	})
}
