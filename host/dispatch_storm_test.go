// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// hostStorm is one host under random rules, failures and stops.
type hostStorm struct {
	t      *testing.T
	b      *hosttest.Broker
	h      *host.Host
	orders *host.Subscription
	said   string // what it is made of

	mu      sync.Mutex
	dice    *rand.Rand
	busy    map[string]int
	tries   map[string]int
	done    map[string]bool
	settled int
	wrong   []string
}

func (s *hostStorm) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dice.IntN(n)
}

func (s *hostStorm) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *hostStorm) note(format string, args ...any) { s.said += fmt.Sprintf(format, args...) + " " }

// one of several.
func one[T any](s *hostStorm, vs ...T) T { return vs[s.n(len(vs))] }

// stormKey is a message's key.
func stormKey(payload []byte) string { return string(payload[len(payload)-1:]) }

// begin notes that messages are handled; what it returns ends that.
func (s *hostStorm) begin(keyed bool, ms ...*host.Message[[]byte]) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(map[string]bool)
	for _, m := range ms {
		keys[stormKey(m.Value)] = true
	}
	for k := range keys {
		if s.busy[k]++; s.busy[k] > 1 && keyed {
			s.wrong = append(s.wrong, "key "+k+" is handled twice at once")
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k := range keys {
			s.busy[k]--
		}
	}
}

// judge is what a handler says of a message: in the end an ack.
func (s *hostStorm) judge(m *host.Message[[]byte]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := string(m.Value)
	if s.tries[p]++; s.tries[p] > 4 {
		s.done[p] = true
		return nil
	}
	switch s.dice.IntN(12) {
	case 0:
		return errors.New("no")
	case 1:
		return host.RetryAfter(time.Duration(s.dice.IntN(3))*time.Second, nil)
	case 2, 3:
		return host.Snooze(time.Duration(s.dice.IntN(3))*time.Second, nil)
	case 4:
		s.done[p] = true
		return host.Drop(nil)
	}
	s.done[p] = true
	return nil
}

func (s *hostStorm) register(kind string, source core.Capabilities) {
	in := s.h.Endpoint("in", s.b.Plugin(source), nil)
	s.b.Source("orders", source)
	var options []host.SubscriptionOption
	if w := one(s, 0, 1, 3, 50); w > 0 {
		options = append(options, host.Window(w, one(s, int64(0), 10, 1000)))
		s.note("window %d", w)
	}
	s.orders = in.Subscription("orders", options...)
	workers, keyed := one(s, 1, 2, 8), s.n(2) == 0
	s.note("workers %d keyed %v", workers, keyed)
	rules := []host.Rule{
		host.Workers(workers), host.MaxAttempts(1000), host.DeadLetterTo(in.To("dead")), host.SnoozeLimit(3, 10*time.Second),
		host.AfterSettle(func(context.Context, host.Settled) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.settled++
		}),
		host.OnFinalFailure(func(_ context.Context, x host.Failure) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.done[string(x.Message.Payload)] = true
		}),
	}
	if kind == "K" {
		rules = append(rules, host.RetryTo(in.To("orders")))
	}
	if keyed {
		rules = append(rules, host.ByKeyFunc(func(m core.Message) string { return stormKey(m.Payload) }))
	}
	if s.n(3) == 0 {
		rules = append(rules, host.RateLimit(100, one(s, 1, 10)))
		s.note("rate")
	}
	if s.n(3) == 0 {
		rules = append(rules, host.CircuitBreaker(host.Circuit{Of: 5, Pause: time.Second, Longest: 5 * time.Second, Probes: 2}))
		s.note("circuit")
	}
	if most := one(s, 0, 0, 1, 4, 100); most > 0 {
		s.note("batch %d", most)
		host.HandleBatch(s.orders, most, time.Duration(1+s.n(2000))*time.Millisecond, func(_ context.Context, ms []*host.Message[[]byte]) []error {
			defer s.begin(keyed, ms...)()
			time.Sleep(time.Duration(s.n(200)) * time.Millisecond)
			switch s.n(30) {
			case 0:
				runtime.Goexit()
			case 1:
				panic("ouch")
			}
			var errs []error
			for _, m := range ms {
				errs = append(errs, s.judge(m))
			}
			return errs
		}, rules...)
		return
	}
	host.Handle(s.orders, func(_ context.Context, m *host.Message[[]byte]) error {
		defer s.begin(keyed, m)()
		time.Sleep(time.Duration(s.n(200)) * time.Millisecond)
		switch s.n(30) {
		case 0:
			runtime.Goexit()
		case 1:
			panic("ouch")
		}
		return s.judge(m)
	}, rules...)
}

// sample looks at the counters.
func (s *hostStorm) sample() {
	for _, e := range s.h.Health().Endpoints {
		for _, sub := range e.Subscriptions {
			c := sub.Counters
			if c.Received != c.Acked+c.Retried+c.Dropped+c.DeadLettered+c.Parked+c.Released+c.Stale+c.InWork || c.InWork > c.Received {
				s.fault("counters do not add up: %+v", c)
			}
		}
	}
}

func (s *hostStorm) weather(kind string, service *hosttest.Service) {
	total := 0
	for range 25 {
		var ms []hosttest.Message
		for range s.n(6) {
			total++
			ms = append(ms, hosttest.Text(fmt.Sprintf("%d%c", total, 'a'+s.n(4))))
		}
		s.b.Deliver("orders", ms...)
		switch s.n(14) {
		case 0:
			if kind != "U" {
				s.b.Crash(s.t, "in")
				service.Ready()
			}
		case 1:
			if kind != "U" {
				s.b.TakeBack("orders")
			}
		case 2, 3:
			s.orders.Pause()
		case 4, 5, 6:
			s.orders.Resume()
		case 7:
			if kind != "K" { // the next ack covers it all the same
				s.b.FailVerdicts("orders", 1)
			}
		case 8:
			s.b.FailPublishes("orders", hosttest.Refused, 1)
		case 9:
			s.b.Double("orders", 1)
		case 10:
			if kind != "U" {
				s.b.Disconnect(s.t, "in")
				service.Ready()
			}
		}
		time.Sleep(time.Duration(s.n(1000)) * time.Millisecond)
		s.sample()
	}
}

func (s *hostStorm) run(kind string, source core.Capabilities) {
	limit := one(s, 0, 100*time.Millisecond, 10*time.Second)
	s.note("kind %s limit %v", kind, limit)
	s.b = hosttest.NewBroker()
	s.h = host.New(host.WithLogger(slog.New(slog.DiscardHandler)), host.WithDrainLimit(limit), host.WithBreaker(1000, time.Second))
	s.register(kind, source)
	if s.n(3) == 0 {
		s.orders.Pause()
	}
	service := hosttest.Start(s.t, s.h, s.b)
	s.weather(kind, service)
	end := one(s, "itself", "itself", "stop", "abort")
	s.note("end %s", end)
	began := time.Now()
	var err error
	switch end {
	case "itself":
		s.orders.Resume()
		s.b.Heal("orders")
		s.b.Disconnect(s.t, "in") // what failed verdicts left unsettled comes back
		service.Ready()
		s.b.CatchUp()
		err = service.Ended()
	case "stop":
		err = service.Stop()
		if took := time.Since(began); limit > 0 && took > limit+time.Second {
			s.fault("a stop within %v took %v", limit, took)
		}
	case "abort":
		s.h.Abort()
		err = service.Ended()
		if took := time.Since(began); took > time.Second {
			s.fault("an abort took %v", took)
		}
	}
	s.sample()
	defer time.Sleep(time.Minute) // until handlers that were left behind have returned
	var cut *host.AbandonedError
	if err != nil && (!errors.As(err, &cut) || end == "itself" || end == "stop" && limit == 0) {
		s.fault("Run: %v", err)
	}
	c := s.h.Health().Endpoints[0].Subscriptions[0].Counters
	if c.InWork > 0 && cut == nil {
		s.fault("in work at the end, and nothing is abandoned: %+v", c)
	}
	if end == "itself" {
		s.mu.Lock()
		if done := c.Acked + c.Retried + c.Dropped + c.DeadLettered; uint64(s.settled) < done {
			s.wrong = append(s.wrong, fmt.Sprintf("%d of %d settlements were told", s.settled, done))
		}
		for p := range s.tries {
			if !s.done[p] && kind != "U" {
				s.wrong = append(s.wrong, p+" did not come to its end")
			}
		}
		s.mu.Unlock()
	}
}

// Whatever rules dispatch a subscription, what its endpoint does, and how the
// host ends: keys are kept, counters add up, nothing is left over, a stop keeps
// its limit, and a host that ends by itself has handled all there was.
func TestDispatchInAStorm(t *testing.T) {
	kinds := map[string]core.Capabilities{
		"A": hosttest.Queue(), "B": hosttest.CountingTopic(), "C": hosttest.CountingQueue(), "D": hosttest.DelayQueue(),
		"K": hosttest.Log(), "M": hosttest.Session(), "T": hosttest.Lease(), "U": hosttest.Stream(),
	}
	names := slices.Sorted(maps.Keys(kinds))
	rapid.Check(t, func(rt *rapid.T) {
		kind, seed := rapid.SampledFrom(names).Draw(rt, "kind"), rapid.Uint64().Draw(rt, "seed")
		var s *hostStorm
		synctest.Test(t, func(t *testing.T) {
			s = &hostStorm{
				t: t, dice: rand.New(rand.NewPCG(seed, 1)), busy: map[string]int{}, tries: map[string]int{}, done: map[string]bool{},
			}
			defer func() {
				if t.Failed() {
					t.Log(s.said)
				}
			}()
			s.run(kind, kinds[kind])
		})
		if len(s.wrong) > 0 {
			rt.Fatalf("%s\n%s", s.said, strings.Join(s.wrong, "\n"))
		}
	})
}
