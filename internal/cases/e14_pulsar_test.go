// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	pulsar "github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// E-14: the network is cut under load, and comes back. It is told at once, with a
// reason, and so is the return. The counters add up at every sample, and nothing is
// lost.
func TestE14CountersOverPulsar(t *testing.T) {
	t.Parallel()
	const (
		away = 6 * time.Second // the pauses between tries have grown by then
		n    = 400
	)
	b := pulsarShared.Broker(t)
	peer, base := newPulsarPeer(t, b), topicsOf(t)
	p := proxy.Start(t, b.Address())
	w := &workload{caps: settings.KindC(), service: newService(t)}
	in := w.pulsar("in", p.URL(), nil)
	host.Handle(in.Subscription(base+"t"), w.handle, host.MaxAttempts(3), host.DeadLetterTo(in.To(base+"q")))
	w.serve()
	over := make(chan struct{})
	var aside sync.WaitGroup
	aside.Go(func() { w.sample(over) })
	fed := 0
	feed := func() {
		var payloads []string
		for range n {
			payloads = append(payloads, fmt.Sprintf("%06d", fed))
			fed++
		}
		peer.one(base+"t", payloads...)
	}
	feed()
	p.Refuse()
	p.Cut()
	cut := time.Now()
	var e host.EndpointHealth
	eventually(t, "it is told that the connection is lost", func() bool {
		e = w.endpoint()
		return e.State == host.EndpointDisconnected
	})
	if s := e.Subscriptions[0]; e.Since.Before(cut.Add(-late)) || e.Reason == "" || s.State != host.SubscriptionDown || s.Reason == "" || w.Ready() {
		t.Errorf("without a connection it is %+v", e)
	}
	feed()
	eventually(t, "it was away for long", func() bool { return time.Since(cut) > away })
	if e := w.endpoint(); e.State != host.EndpointDisconnected {
		t.Errorf("after %v it is %+v", away, e)
	}
	p.Resume()
	eventually(t, "it is told that the connection is back", w.Ready)
	if e := w.endpoint(); e.State != host.EndpointUp || e.Reason != "" {
		t.Errorf("with the connection again it is %+v", e)
	}
	feed()
	b.AwaitBacklog(base+"t", pulsarSub, 0)
	eventually(t, "nothing is in work", func() bool { return w.counters().InWork == 0 })
	close(over)
	aside.Wait()
	c, all := w.counters(), uint64(fed)
	t.Logf("%+v", c)
	if c.Lost != 0 || c.Acked < all*7/10 || c.Dropped < all/10 || c.DeadLettered < all/5 {
		t.Errorf("of %d messages: %+v", all, c)
	}
	w.stops()
	if dead := len(peer.read(base + "q")); dead != fed/5 {
		t.Errorf("%d messages have dead letters, want %d", dead, fed/5)
	}
}

// guarded is a service of "ann" in a namespace where that is asked, and its topics.
func guarded(t *testing.T, b *pulsarbroker.Broker, space string, handle func(*host.Message[[]byte]) error) (s *service, orders, graves string) {
	t.Helper()
	orders, graves = space+"/orders", space+"/graves"
	s = newService(t)
	in := s.pulsar("in", b.URL(), func(set *pulsar.Settings) { set.Token = core.NewSecret(b.Token("ann")) })
	s.notes(in.Subscription(orders), handle, host.MaxAttempts(1), host.DeadLetterTo(in.To(graves)))
	s.serve()
	return s, orders, graves
}

// guardedPut publishes as somebody who may.
func guardedPut(t *testing.T, b *pulsarbroker.Broker, topic string, payloads ...string) {
	t.Helper()
	c, err := lib.NewClient(lib.ClientOptions{URL: b.URL(), Authentication: lib.NewAuthenticationToken(b.Token("admin"))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	(&pulsarPeer{t, b, c}).one(topic, payloads...)
}

// E-14: permissions are taken away at run time. That to read ends the service, which
// says for what, and is not tried for ever. That to write to the dead letter is said
// with both names; the message is kept, and there and counted once it is given back.
func TestE14PermissionsAreTakenAwayOverPulsar(t *testing.T) {
	t.Parallel()
	b := pulsarbroker.Start(t, pulsarbroker.Config{Tokens: true, Authorize: true})
	t.Run("read", func(t *testing.T) {
		const space = "public/read"
		b.CreateNamespace(space)
		b.Grant(space, "ann", "produce", "consume")
		s, orders, _ := guarded(t, b, space, acks)
		guardedPut(t, b, orders, "x")
		eventually(t, "it is handled", func() bool { return s.counters(orders).Acked == 1 })
		b.Revoke(space, "ann")
		eventually(t, "the service ends", func() bool {
			b.Unload("persistent://" + orders) // else who is there stays
			select {
			case <-s.done:
				return true
			case <-time.After(time.Second):
				return false
			}
		})
		lost, ok := errors.AsType[*host.EndpointError](s.err)
		if !ok || lost.Endpoint != "in" || lost.Subscription != orders || !strings.Contains(s.err.Error(), "permission") {
			t.Fatalf("got %v, want an *EndpointError of %s", s.err, orders)
		}
		h := s.Health()
		if sub := h.Endpoints[0].Subscriptions[0]; sub.State != host.SubscriptionDown || !strings.Contains(sub.Reason, orders) {
			t.Errorf("the subscription is %+v", sub)
		}
		if h.Ready || h.State != host.StateStopped {
			t.Errorf("the host is %+v", h)
		}
	})
	t.Run("write", func(t *testing.T) {
		const space = "public/write"
		again := func(*host.Message[[]byte]) error { return host.Retry(nil) }
		b.CreateNamespace(space)
		b.Grant(space, "ann", "produce", "consume")
		s, orders, graves := guarded(t, b, space, again)
		b.Revoke(space, "ann")
		b.GrantTopic(orders, "ann", "consume")
		guardedPut(t, b, orders, "x")
		eventually(t, "it is told", func() bool { return len(s.log.having("", "L-COPY", graves+"@in", orders)) > 0 })
		if c := s.counters(orders); c.DeadLettered+c.Acked+c.Lost != 0 || !s.Ready() {
			t.Errorf("meanwhile: %+v, ready: %v", c, s.Ready())
		}
		b.Grant(space, "ann", "produce", "consume")
		s.stops() // it would be tried again when its minute is over
		b.AwaitBacklog("persistent://"+orders, pulsarSub, 1)
		next, _, _ := guarded(t, b, space, again)
		eventually(t, "it is counted", func() bool { return next.counters(orders).DeadLettered == 1 })
		b.AwaitBacklog("persistent://"+graves, "longshore-dead-letters", 1)
		next.stops()
	})
}
