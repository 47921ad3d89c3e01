// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// settled is a service whose deliveries end with what is said, whatever is
// declared. One of them waits: the others are acked all the same.
func settled(t *testing.T, o settings.SubscribeOptions, says error) {
	t.Helper()
	let := make(chan struct{})
	var declared func(*service) []host.Rule
	if counts(o) {
		declared = toQ(host.MaxAttempts(1), host.Workers(2))
	} else {
		declared = rules(host.Workers(2))
	}
	s := row(t, o, func(m *host.Message[[]byte]) error {
		if string(m.Value) == "waits" {
			<-let
		}
		return says
	}, declared)
	s.b.CreateSubscription(s.topic("t"), "other")
	s.put("t", texts("waits", "a", "b")...)
	s.left(1)
	close(let)
	s.Handled(3)
	s.stop(0)
	if n := s.b.Backlog(s.topic("t"), "other"); n != 3 {
		t.Errorf("another subscription has %d messages left", n)
	}
	if counts(o) {
		if n := s.b.Stats(s.topic("q")).MsgInCounter; n != 0 {
			t.Errorf("%d dead letters", n)
		}
	}
	s.Log.Silent(t)
}

func TestS_PUL_01(t *testing.T) {
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) { settled(t, o, nil) })
}

func TestS_PUL_02(t *testing.T) {
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) { settled(t, o, host.Drop(nil)) })
}

// The first comes back at once, the next ones after 50 ms, 100 ms and so on.
func TestS_PUL_03(t *testing.T) {
	t.Parallel()
	var c clock
	s := row(t, settings.SubscribeOptions{}, c.of(until(4, host.Retry(nil))), nil)
	s.put("t", texts("x")...)
	s.ran(5, 1, "x", 2, "x", 3, "x", 4, "x", 5, "x")
	s.stop(0)
	if took := c.between(2, 5); took < 340*time.Millisecond {
		t.Errorf("three returns took %v", took)
	}
	s.codes(nil)
}

// Without a floor all of them do: with it the last ones would take a second each.
func TestS_PUL_03_no_floor(t *testing.T) {
	t.Parallel()
	const n = 20
	var c clock
	s := row(t, settings.SubscribeOptions{}, c.of(until(n, host.Retry(nil))), rules(host.Floor(0)))
	s.put("t", texts("x")...)
	s.Ran(n + 1)
	s.stop(0)
	fastest := time.Hour
	for i := n / 2; i <= n; i++ {
		fastest = min(fastest, c.between(i, i+1))
	}
	t.Logf("%v for a return", fastest)
	if fastest > 500*time.Millisecond {
		t.Errorf("late returns took %v at least", fastest)
	}
	s.codes(nil)
}

func TestS_PUL_04(t *testing.T) {
	types(t, ordered, func(t *testing.T, o settings.SubscribeOptions) {
		var c clock
		s := row(t, o, c.of(until(3, host.Retry(nil))), nil)
		s.put("t", texts("x")...)
		s.ran(4, 0, "x", 0, "x", 0, "x", 0, "x")
		s.stop(0)
		if took := c.between(2, 4); took < 140*time.Millisecond {
			t.Errorf("two returns took %v", took)
		}
		s.codes(nil)
	})
}

// What the host has not got yet comes behind it, in order.
func TestS_PUL_04_order(t *testing.T) {
	types(t, ordered, func(t *testing.T, o settings.SubscribeOptions) {
		s := newService(t, rowOptions{})
		one := until(1, host.Retry(nil))
		s.Handle(s.reads("t", o, host.Window(1, 1<<20)), func(m *host.Message[[]byte]) error {
			if string(m.Value) == "1" {
				return one(m)
			}
			return nil
		})
		s.Start()
		s.put("t", texts("0", "1", "2", "3")...)
		s.handled(5, 0, "0", 0, "1", 0, "1", 0, "2", 0, "3")
		s.stop(0)
		s.codes(nil)
	})
}

// comesAfter checks that a delivery whose handler asks for a delay comes again
// after it, is unacked meanwhile, and that nothing is published.
func comesAfter(t *testing.T, o settings.SubscribeOptions) {
	t.Helper()
	const d = 400 * time.Millisecond
	var c clock
	s := row(t, o, c.of(until(1, host.RetryAfter(d, nil))), nil)
	s.put("t", texts("x")...)
	s.ran(1, nth(o, 1), "x")
	if n := s.b.Backlog(s.topic("t"), sub); n != 1 && len(s.Runs()) == 1 {
		t.Errorf("%d messages are unacked while it waits", n)
	}
	s.ran(1, nth(o, 2), "x")
	s.stop(0)
	if took := c.between(1, 2); took < d || took > d+20*time.Second {
		t.Errorf("it came after %v", took)
	}
	if n := s.b.Stats(s.topic("t")).MsgInCounter; n != 1 {
		t.Errorf("%d messages were published", n)
	}
	s.codes(nil)
}

func TestS_PUL_05(t *testing.T) {
	t.Parallel()
	comesAfter(t, settings.SubscribeOptions{})
}

// A delay below ack_timeout is kept to.
func TestS_PUL_06(t *testing.T) {
	t.Parallel()
	comesAfter(t, settings.SubscribeOptions{AckTimeout: core.Duration(time.Minute)})
}

// A delay as long as ack_timeout or longer is not: it comes after ack_timeout.
func TestS_PUL_07(t *testing.T) {
	const limit = 2 * time.Second
	for name, d := range map[string]time.Duration{"as long": limit, "longer": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
				o.AckTimeout = core.Duration(limit)
				var c clock
				s := row(t, o, c.of(until(1, host.RetryAfter(d, nil))), nil)
				s.put("t", texts("x")...)
				s.ran(2, nth(o, 1), "x", nth(o, 2), "x")
				s.stop(0)
				// It counts from when the plugin has handed it over.
				if took := c.between(1, 2); took < limit/2 || took > 20*limit {
					t.Errorf("it came after %v", took)
				}
				s.codes(map[string]int{"L-DELAY": 1})
			})
		})
	}
}

func TestS_PUL_12(t *testing.T) {
	t.Parallel()
	s := row(t, settings.SubscribeOptions{}, servicetest.Always(host.Drop(nil)), toQ(host.MaxAttempts(3)))
	s.put("t", texts("x")...)
	s.handled(1, 1, "x")
	s.stop(0)
	s.letters(0)
	s.codes(nil)
}

// order is what handlers of undecodable messages want.
type order struct{ ID int }

func TestS_PUL_26(t *testing.T) {
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
		s := newService(t, rowOptions{})
		ran := make(chan int, 2)
		host.Handle(s.reads("t", o), func(_ context.Context, m *host.Message[order]) error {
			ran <- m.Value.ID
			return nil
		})
		s.Start()
		s.put("t", texts("{", `{"ID":7}`)...)
		s.left(0)
		if id := <-ran; id != 7 {
			t.Errorf("order %d", id)
		}
		s.stop(0)
		s.codes(map[string]int{"L-DEC": 1})
	})
}

func TestS_PUL_30(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	batches := make(chan []string, 2)
	host.HandleBatch(s.reads("t", settings.SubscribeOptions{}), 3, 5*time.Second, func(_ context.Context, ms []*host.Message[[]byte]) []error {
		var runs []string
		for _, m := range ms {
			runs = append(runs, fmt.Sprintf("%d %s", m.Attempt(), m.Value))
		}
		batches <- runs
		return []error{nil, host.Retry(nil), host.Drop(nil)}[:len(ms)]
	})
	s.b.CreateTopic(s.topic("t")) // so that one producer fills the batch
	s.Start()
	s.put("t", texts("a", "b", "c")...)
	servicetest.Expect(t, "the batch", <-batches, "1 a", "1 b", "1 c")
	servicetest.Expect(t, "the next one", <-batches, "2 b")
	s.left(0)
	s.stop(0)
	s.codes(nil)
}

// What a handler leaves comes again after ack_timeout.
func TestS_PUL_33(t *testing.T) {
	const limit = 2 * time.Second
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
		o.AckTimeout = core.Duration(limit)
		var c clock
		s := row(t, o, c.of(until(2, host.Leave())), nil)
		s.put("t", texts("x")...)
		s.ran(3, nth(o, 1), "x", nth(o, 2), "x", nth(o, 3), "x")
		s.stop(0)
		if took := c.between(1, 3); took < limit {
			t.Errorf("it came twice within %v", took)
		}
		s.Log.Silent(t)
	})
}

// Without ack_timeout it does only when the consumer has gone.
func TestS_PUL_34(t *testing.T) {
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
		s := row(t, o, servicetest.Always(host.Leave()), nil)
		s.put("t", texts("x")...)
		s.ran(1, nth(o, 1), "x")
		s.Eventually("it is released", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.Released == 1 })
		s.b.Await(s.topic("t"), "it is unacked", func(st pulsarbroker.Stats) bool { return st.Subscriptions[sub].Unacked == 1 || !counts(o) })
		s.stop(1)
		s.Log.Silent(t)
		next := newService(t, rowOptions{base: s.base})
		next.Handle(next.reads("t", o), servicetest.Always(nil))
		next.Start()
		next.Handled(1)
		next.stop(0)
	})
}

func TestS_PUL_36(t *testing.T) {
	types(t, ordered, comesAfter)
}
