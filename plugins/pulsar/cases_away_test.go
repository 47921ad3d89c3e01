// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// The cases in which the broker ends and comes back, on one of their own.
func TestBrokerIsAway(t *testing.T) {
	t.Parallel()
	b := pulsarbroker.Start(t, pulsarbroker.Config{})
	t.Run("P-10 back before they end", func(t *testing.T) { acksWithTheBrokerAway(t, b, true) })
	t.Run("P-10 away when they end", func(t *testing.T) { acksWithTheBrokerAway(t, b, false) })
	t.Run("P-11", func(t *testing.T) { publishWithTheBrokerGone(t, b) })
	t.Run("P-13", func(t *testing.T) {
		grows(t, b, func(p *proxy.Proxy, grow func()) {
			grow()
			p.Await(proxy.ToServer, proxy.Subscribe, 3) // it has found them
			b.Kill()
			b.Start()
		})
	})
}

// P-10: the broker is stopped while thirty handlers work, and comes back before they
// are done, or behind that. Each message is handled once more at most; the broker's
// count begins anew with it, so that this is a first attempt again (docs/pulsar.md).
// Then nothing is left.
func acksWithTheBrokerAway(t *testing.T, b *pulsarbroker.Broker, back bool) {
	const n = 30
	s := newService(t, rowOptions{broker: b})
	var handled counted
	running, release := make(chan struct{}, 3*n), make(chan struct{})
	s.Handle(s.reads("t", settings.SubscribeOptions{}), func(m *host.Message[[]byte]) error {
		handled.add(m.Value)
		running <- struct{}{}
		<-release
		return nil
	}, host.Workers(2*n))
	s.Start()
	s.put("t", numbered(n)...)
	for range n {
		<-running
	}
	b.Stop()
	s.Eventually("the loss is told", func() bool { return !s.Ready() })
	if back {
		b.Start()
		s.Eventually("the connection is back", s.Ready)
		close(release)
	} else {
		close(release)
		s.Eventually("the handlers are done", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.InWork == 0 })
		b.Start()
		s.Eventually("the connection is back", s.Ready)
	}
	s.left(0)
	for i, times := range handled.of(n) {
		if times < 1 || times > 2 {
			t.Errorf("message %d was handled %d times", i, times)
		}
	}
	s.Handled(len(s.Runs()))
	s.stop(0)
	if lines := s.Log.Lines("level=ERROR"); len(lines) > 0 {
		t.Errorf("errors: %v", lines)
	}
	next := newService(t, rowOptions{broker: b, base: s.base})
	next.Handle(next.reads("t", settings.SubscribeOptions{}), servicetest.Always(nil))
	next.Start()
	next.put("t", texts("new")...)
	next.handled(1, 1, "new")
	next.stop(0)
}

// P-11: a publisher is in use when the broker is killed: what is published meanwhile
// has its error in time, what comes later is stored, and nothing is left of them.
func publishWithTheBrokerGone(t *testing.T, b *pulsarbroker.Broker) {
	const (
		deadline = 3 * time.Second
		late     = 10 * deadline // of a busy machine
	)
	s := newService(t, rowOptions{broker: b})
	out := host.To[[]byte](s.Host, s.in.To(s.topic("t")))
	s.Start()
	for range 20 {
		if _, err := out.Publish(t.Context(), []byte("in use")); err != nil {
			t.Fatal(err)
		}
	}
	b.Kill()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			began := time.Now()
			_, err := out.Publish(ctx, []byte("meanwhile"))
			if took := time.Since(began); err == nil || took > late {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
	all.Wait()
	b.Start()
	s.Eventually("what comes later is stored", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		_, err := out.Publish(ctx, []byte("later"))
		return err == nil
	})
	s.Stop()
}
