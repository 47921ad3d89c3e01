// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// summary writes what a host is at in a few words, with the times since began.
func summary(h host.Health, began time.Time) []string {
	say := func(what string, state any, since time.Time, reason string) string {
		out := fmt.Sprintf("%s %v since %v", what, state, since.Sub(began))
		if reason != "" {
			out += ": " + reason
		}
		return out
	}
	ready := "host"
	if h.Ready {
		ready = "ready host"
	}
	out := []string{say(ready, h.State, h.Since, h.Reason)}
	for _, e := range h.Endpoints {
		out = append(out, say(fmt.Sprintf("%s(%d,%d)", e.Name, e.Generation, e.Restarts), e.State, e.Since, e.Reason))
		for _, s := range e.Subscriptions {
			out = append(out, say(e.Name+"/"+s.Name, s.State, s.Since, s.Reason))
		}
	}
	return out
}

// is compares what the host is at with what is wanted.
func (s *service) is(t *testing.T, when string, began time.Time, want ...string) {
	t.Helper()
	synctest.Wait()
	if d := cmp.Diff(want, summary(s.Health(), began)); d != "" {
		t.Errorf("%s (-want +got):\n%s", when, d)
	}
}

// crashed is the reason of an endpoint whose plugin was killed.
func crashed(generation int) string {
	return fmt.Sprintf("plugin lost: plugin process %d (generation %d) ended by signal: killed", os.Getpid(), generation)
}

func TestHealthFromStartToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := newQueues()
		q.connected = func(context.Context, []byte) error {
			time.Sleep(time.Second)
			return nil
		}
		s := newService(host.WithRestartBackoff(10*time.Second, 10*time.Second))
		time.Sleep(time.Second)
		in := attach(s.Host, "in", q)
		release := make(chan struct{})
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			<-release
			return nil
		})
		s.is(t, "before Run", began, "host new since 0s")
		s.run(t)
		time.Sleep(500 * time.Millisecond)
		s.is(t, "while it connects", began, "host starting since 1s", "in(0,0) starting since 1s", "in/orders waiting since 1s")
		time.Sleep(time.Second)
		s.is(t, "when it serves", began, "ready host serving since 2s", "in(1,0) up since 2s", "in/orders open since 2s")
		time.Sleep(8 * time.Second)
		s.Crash("in")
		s.is(t, "after a crash", began, "host serving since 2s", "in(1,0) restarting since 10.5s: "+crashed(1), "in/orders down since 10.5s: "+crashed(1))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		s.is(t, "while it connects again", began,
			"host serving since 2s", "in(1,1) restarting since 10.5s: "+crashed(1), "in/orders down since 10.5s: "+crashed(1))
		time.Sleep(9*time.Second + 500*time.Millisecond)
		s.is(t, "with its second plugin", began, "ready host serving since 2s", "in(2,1) up since 21.5s", "in/orders open since 21.5s")
		q.put("orders", "one")
		synctest.Wait()
		s.stop()
		time.Sleep(time.Second)
		s.is(t, "during the stop", began, "host stopping since 30.5s", "in(2,1) up since 21.5s", "in/orders stopped since 30.5s")
		close(release)
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		s.is(t, "after Run", began, "host stopped since 31.5s", "in(2,1) stopped since 31.5s", "in/orders stopped since 30.5s")
		want := host.Counters{Received: 1, Acked: 1}
		if got := s.Health().Endpoints[0].Subscriptions[0].Counters; got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

func TestHealthOfAStartThatFails(t *testing.T) {
	s := newService()
	q := newQueues()
	q.connected = func(context.Context, []byte) error { return unavailable("no broker") }
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), acks)
	startError(t, s)
	h := s.Health()
	if h.State != host.StateStopped || h.Ready || !strings.Contains(h.Reason, "no broker") {
		t.Errorf("got %+v, want a stop for the broker", h)
	}
	refused := newService()
	host.Handle(attach(refused.Host, "in", newQueues()).Subscription("orders"), acks, host.MaxAttempts(0))
	startError(t, refused)
	h = refused.Health()
	if h.State != host.StateStopped || !strings.Contains(h.Reason, "MaxAttempts") ||
		len(h.Endpoints) != 1 || h.Endpoints[0].State != host.EndpointStopped {
		t.Errorf("got %+v, want a stop for the rule", h)
	}
}

// A subscription that ended with an error is down, and the host not ready, until
// it is open again.
func TestHealthOfSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := newQueues()
		s := newService(host.StayUp())
		in := attach(s.Host, "in", q)
		for _, name := range []string{"a", "b", "c"} {
			host.Handle(in.Subscription(name), acks)
		}
		s.run(t)
		synctest.Wait()
		time.Sleep(time.Second)
		q.end("a")
		q.replay("b")
		q.fail("c", &core.Fault{
			Code: core.FaultUnavailable, Message: "rebalanced", Transient: true, RetryAfter: 5 * time.Second,
		})
		s.is(t, "with ends", began, "host serving since 0s", "in(1,0) up since 0s",
			"in/a ended since 1s", "in/b caught up since 1s", "in/c down since 1s: rebalanced")
		time.Sleep(6 * time.Second)
		s.is(t, "later", began, "ready host serving since 0s", "in(1,0) up since 0s",
			"in/a ended since 1s", "in/b caught up since 1s", "in/c open since 6s")
		q.put("b", "more")
		s.is(t, "with more", began, "ready host serving since 0s", "in(1,0) up since 0s",
			"in/a ended since 1s", "in/b caught up since 7s", "in/c open since 6s")
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

// A pause is a state of the subscription and leaves the host ready; one that was
// declared before Run begins with it.
func TestHealthOfPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := newQueues()
		s := newService(host.WithRestartBackoff(time.Second, time.Second))
		orders := attach(s.Host, "in", q).Subscription("orders")
		host.Handle(orders, acks)
		orders.Pause()
		s.run(t)
		s.is(t, "at first", began, "ready host serving since 0s", "in(1,0) up since 0s", "in/orders paused since 0s")
		time.Sleep(time.Second)
		orders.Resume()
		s.is(t, "resumed", began, "ready host serving since 0s", "in(1,0) up since 0s", "in/orders open since 1s")
		time.Sleep(time.Second)
		orders.Pause()
		s.is(t, "paused", began, "ready host serving since 0s", "in(1,0) up since 0s", "in/orders paused since 2s")
		time.Sleep(time.Second)
		s.Crash("in")
		s.is(t, "and crashed", began, "host serving since 0s", "in(1,0) restarting since 3s: "+crashed(1), "in/orders down since 3s: "+crashed(1))
		time.Sleep(time.Second)
		s.is(t, "and up again", began, "ready host serving since 0s", "in(2,1) up since 4s", "in/orders paused since 4s")
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

// A circuit breaker that has opened is a state as well, until its probe is fine.
func TestHealthOfACircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := newQueues()
		s := newService()
		var heals atomic.Bool
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			if heals.Load() {
				return nil
			}
			return errors.New("no stock")
		}, host.MaxAttempts(1), host.CircuitBreaker(host.Circuit{Share: 1, Of: 3, Pause: 10 * time.Second}))
		s.run(t)
		time.Sleep(time.Second)
		q.put("orders", "1", "2", "3")
		s.is(t, "tripped", began, "ready host serving since 0s", "in(1,0) up since 0s", "in/orders tripped since 1s: its circuit breaker is open")
		heals.Store(true)
		time.Sleep(10 * time.Second)
		s.is(t, "probing", began, "ready host serving since 0s", "in(1,0) up since 0s", "in/orders tripped since 11s: its circuit breaker is half-open")
		time.Sleep(time.Second)
		q.put("orders", "4")
		s.is(t, "closed", began, "ready host serving since 0s", "in(1,0) up since 0s", "in/orders open since 12s")
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthIsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues()
		q.put("orders", "1", "2")
		s := newService(host.StayUp())
		in := attach(s.Host, "in", q)
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error { return nil }, host.Forward(in.To("done")))
		s.run(t)
		synctest.Wait()
		text, err := json.MarshalIndent(s.Health(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want := `{
  "state": "serving",
  "ready": true,
  "since": "2000-01-01T00:00:00Z",
  "waiting": 0,
  "endpoints": [
    {
      "name": "in",
      "transport": "queues",
      "state": "up",
      "since": "2000-01-01T00:00:00Z",
      "generation": 1,
      "restarts": 0,
      "published": {
        "confirmed": 2,
        "refused": 0,
        "unknown": 0,
        "missing": 0
      },
      "subscriptions": [
        {
          "name": "orders",
          "state": "open",
          "since": "2000-01-01T00:00:00Z",
          "counters": {
            "received": 2,
            "acked": 2,
            "retried": 0,
            "dropped": 0,
            "dead_lettered": 0,
            "parked": 0,
            "released": 0,
            "stale": 0,
            "in_work": 0,
            "waiting": 0,
            "lost": 0,
            "failed": 0,
            "reports": 0
          },
          "hooks": 0
        }
      ]
    }
  ]
}`
		utc := strings.ReplaceAll(string(text), time.Now().Format(time.RFC3339), "2000-01-01T00:00:00Z")
		if d := cmp.Diff(want, utc); d != "" {
			t.Errorf("JSON (-want +got):\n%s", d)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

// Of a real process: its pid and last words stand in Health, its connection that
// is lost makes it unready, and Health may be asked at any time meanwhile.
func TestHealthOfARealProcess(t *testing.T) {
	b := newBench(t)
	s := b.service(host.WithRestartBackoff(200*time.Millisecond, 200*time.Millisecond))
	host.Handle(b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA())).Subscription("orders"), acks)
	over, pace := make(chan struct{}), time.NewTicker(time.Millisecond)
	defer pace.Stop()
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-pace.C:
			}
			if _, err := json.Marshal(s.Health()); err != nil {
				t.Error(err)
			}
		}
	})
	defer asking.Wait()
	defer close(over)
	s.serve(t)
	mem := func() host.EndpointHealth { return s.Health().Endpoints[0] }

	b.Down()
	eventually(t, "disconnected", func() bool { return mem().State == host.EndpointDisconnected })
	cut := mem()
	if cut.Reason == "" || cut.Subscriptions[0].State != host.SubscriptionDown || cut.Subscriptions[0].Reason != cut.Reason {
		t.Errorf("without a broker it is %+v", cut)
	}
	b.Up()
	eventually(t, "connected", func() bool { return mem().State == host.EndpointUp })
	if back := mem(); back.Reason != "" || !back.Since.After(cut.Since) || back.Subscriptions[0].State != host.SubscriptionOpen ||
		back.Subscriptions[0].Since != back.Since {
		t.Errorf("with the broker again it is %+v", back)
	}

	c, err := b.Client(b.ctx, "mem")
	b.must(t, err)
	pause := b.PauseAt("", memory.AtExec) // until all is seen
	b.must(t, c.Panic(b.ctx, memory.PanicGoroutine))
	eventually(t, "restarting", func() bool { return mem().State == host.EndpointRestarting })
	down := mem()
	if !strings.Contains(down.Reason, "exited with status 2") {
		t.Errorf("reason %q, want how the process ended", down.Reason)
	}
	eventually(t, "its last words", func() bool {
		return strings.Contains(strings.Join(mem().Stderr, "\n"), "panic: ")
	})
	pause.Release()
	eventually(t, "up again", func() bool { return mem().State == host.EndpointUp })
	if up := mem(); up.Generation != 2 || up.Restarts != 1 || up.Reason != "" {
		t.Errorf("after a restart it is %+v", up)
	}
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
}

// Lists without entries are lists in JSON as well.
func TestHealthWithoutEntries(t *testing.T) {
	h := host.New()
	text, err := json.Marshal(h.Health())
	if err != nil || !strings.Contains(string(text), `"endpoints":[]`) {
		t.Errorf("got %s, %v", text, err)
	}
	h.Endpoint("out", host.Plugin{Name: "missing-one"}, nil)
	_ = h.Run(t.Context())
	if text, err = json.Marshal(h.Health()); err != nil || !strings.Contains(string(text), `"subscriptions":[]`) {
		t.Errorf("got %s, %v", text, err)
	}
}
