// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// unconnected is a service whose start is refused before anything is dialed.
func unconnected(t *testing.T) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t), t: t, base: "u"}
	s.in = s.Endpoint("in", host.Plugin{Name: "pulsar", Path: pluginPath(t)}, settings.Settings{URL: "pulsar://127.0.0.1:1"})
	return s
}

func TestS_PUL_13(t *testing.T) {
	t.Parallel()
	s := unconnected(t)
	s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil), host.MaxAttempts(3))
	s.Refused("u-t", "DeadLetterTo", "subscription s", "u-t", "DeadLetterTo")
}

func TestS_PUL_14(t *testing.T) {
	t.Parallel()
	s := unconnected(t)
	s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil), s.dead()...)
	s.Refused("u-t", "MaxAttempts", "subscription s", "u-t", "MaxAttempts")
}

func TestS_PUL_15(t *testing.T) {
	types(t, ordered, func(t *testing.T, o settings.SubscribeOptions) {
		s := unconnected(t)
		s.Handle(s.reads("t", o), servicetest.Always(nil), s.dead(host.MaxAttempts(3))...)
		s.Refused("u-t", "type", o.Type, "shared", "key_shared")
	})
}

func TestS_PUL_16(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"public/default/a/b", "non-persistent://public/default/q", "q q", "public/q"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			s := unconnected(t)
			s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil), host.MaxAttempts(3), host.DeadLetterTo(s.in.To(topic)))
			s.Refused("u-t", "DeadLetterTo", topic)
		})
	}
}

func TestS_PUL_17(t *testing.T) {
	t.Parallel()
	s := unconnected(t)
	s.Handle(s.in.Subscription("orders"), servicetest.Always(nil))
	s.Refused("orders", "subscription", "orders", "default_subscription")
}

func TestS_PUL_19(t *testing.T) {
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
		s := unconnected(t)
		s.Handle(s.reads("t", o), servicetest.Always(nil), host.RetryTo(s.in.To("again")))
		s.Refused("u-t", "RetryTo", "subscription s", "MaxAttempts and DeadLetterTo")
	})
}

func TestS_PUL_20(t *testing.T) {
	t.Parallel()
	s := unconnected(t)
	o := host.Options(settings.SubscribeOptions{Subscription: sub, Pattern: true})
	s.Handle(s.in.Subscription("public/default/orders-.*", o), servicetest.Always(nil), host.MaxAttempts(2), host.DeadLetterTo(s.in.To("orders-dead")))
	s.Refused("public/default/orders-.*", "DeadLetterTo", "orders-dead", "orders-.*")
}

func TestS_PUL_37(t *testing.T) {
	t.Parallel()
	for name, longest := range map[string]time.Duration{"as long": 10 * time.Second, "longer": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unconnected(t)
			o := settings.SubscribeOptions{AckTimeout: core.Duration(10 * time.Second)}
			s.Handle(s.reads("t", o), servicetest.Always(nil), host.Backoff(host.Exponential(time.Second, longest)))
			s.Refused("u-t", "ack_timeout", "subscription s", "ack_timeout", "Backoff")
		})
	}
}

// A pattern matches whole names: what only begins as it says is not read.
func TestS_PUL_20_beside(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	o := host.Options(settings.SubscribeOptions{Subscription: sub, Pattern: true})
	s.b.CreateTopic(s.topic("orders-1"))
	s.Handle(s.in.Subscription("public/default/"+s.topic("orders-[0-9]"), o), servicetest.Always(host.Retry(nil)),
		host.MaxAttempts(2), host.DeadLetterTo(s.in.To(s.topic("orders-1-dead"))))
	s.Start()
	s.Stop()
}
