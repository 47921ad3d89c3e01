// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

func TestPause(t *testing.T) {
	synctest.Test(t, testPause)
}

func testPause(t *testing.T) {
	in := newQueues()
	s := newService()
	began, release := make(chan string, 10), make(chan struct{})
	orders := attach(s.Host, "in", in).Subscription("orders")
	host.Handle(orders, func(_ context.Context, m *host.Message[[]byte]) error {
		began <- string(m.Value)
		<-release
		return nil
	})
	orders.Pause()
	s.serve(t)
	if !orders.Paused() {
		t.Error("a pause before Run is forgotten")
	}
	in.put("orders", "one", "two")
	synctest.Wait()
	if got := in.left("orders"); len(got) != 2 || len(began) != 0 {
		t.Errorf("%v are left and %d began, want both left", got, len(began))
	}
	orders.Resume()
	orders.Resume()
	if got := receive(t, began); got != "one" || orders.Paused() {
		t.Errorf("got %s, paused %v", got, orders.Paused())
	}
	orders.Pause() // while one is handled and the other has arrived
	close(release)
	eventually(t, "the one that was handled is acked", func() bool { return len(in.verdicts("orders")) == 1 })
	in.put("orders", "three")
	synctest.Wait()
	if len(began) > 0 {
		t.Errorf("%s was begun while paused", <-began)
	}
	orders.Resume()
	eventually(t, "all are acked", func() bool { return len(in.verdicts("orders")) == 3 })
	orders.Pause()
	s.stop()
	if err := s.result(t); err != nil {
		t.Errorf("a paused host stops with %v", err)
	}
	orders.Resume() // after the run it is nothing
}

// Of a paused subscription a stop handles what would be lost.
func TestPauseLosesNothing(t *testing.T) {
	in := newQueues()
	in.source = core.Capabilities{Unsettled: core.UnsettledLost, Address: "own"}
	s := newService()
	began, release := make(chan struct{}, 10), make(chan struct{})
	var told tale
	orders := attach(s.Host, "in", in).Subscription("orders")
	host.Handle(orders, func(_ context.Context, m *host.Message[[]byte]) error {
		told.add("%s", m.Value)
		began <- struct{}{}
		<-release
		return nil
	}, host.MaxAttempts(3))
	s.serve(t)
	in.put("orders", "one", "two", "three")
	receive(t, began)
	orders.Pause()
	close(release)
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"one", "three", "two"}, told.all()); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

func TestWorkers(t *testing.T) {
	const workers = 4
	in := newQueues()
	s := newService()
	var now, most atomic.Int32
	all := make(chan struct{})
	met := sync.OnceFunc(func() { close(all) })
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		n := now.Add(1)
		defer now.Add(-1)
		if n == workers {
			met()
		}
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-all
		return nil
	}, host.Workers(workers))
	s.serve(t)
	for i := range 2 * workers {
		in.put("orders", fmt.Sprint(i))
	}
	eventually(t, "all are acked", func() bool { return len(in.verdicts("orders")) == 2*workers })
	if got := most.Load(); got != workers {
		t.Errorf("%d ran at a time, want %d", got, workers)
	}
}

// keyed are messages whose payload begins with their key.
func keyed(q *queues, name string, payloads ...string) {
	for _, p := range payloads {
		q.take(core.Message{
			Name: name, Payload: []byte(p), Headers: core.Headers{{Name: "Partition-Key", Value: []byte(p[:1])}},
		}, nil)
	}
}

// Within a key deliveries are begun in order and one at a time, others meanwhile.
func TestKeys(t *testing.T) {
	byPayload := func(m core.Message) string { return string(m.Payload[:1]) }
	for name, rule := range map[string]host.Rule{"header": host.ByKey(), "function": host.ByKeyFunc(byPayload)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newQueues()
				s := newService()
				var mu sync.Mutex
				order := make(map[byte][]string)
				busy := make(map[byte]bool)
				host.Handle(attach(s.Host, "in", in).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
					k := m.Value[0]
					mu.Lock()
					if busy[k] {
						t.Errorf("two of key %c at a time", k)
					}
					busy[k] = true
					order[k] = append(order[k], string(m.Value))
					mu.Unlock()
					time.Sleep(time.Duration(k-'a'+1) * time.Second)
					mu.Lock()
					busy[k] = false
					mu.Unlock()
					return nil
				}, host.Workers(3), rule)
				keyed(in, "orders", "a1", "b1", "a2", "c1", "a3", "b2", "c2", "a4")
				began := time.Now()
				s.serve(t)
				for len(in.verdicts("orders")) < 8 {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > 7*time.Second {
					t.Errorf("it took %v, want what the slowest key takes: the others go on meanwhile", took)
				}
				want := map[byte][]string{'a': {"a1", "a2", "a3", "a4"}, 'b': {"b1", "b2"}, 'c': {"c1", "c2"}}
				if diff := cmp.Diff(want, order); diff != "" {
					t.Errorf("order (-want +got):\n%s", diff)
				}
				s.stop()
				if err := <-s.done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What a key function throws is a panic of the handler, which does not run; and the
// subscription goes on.
func TestKeyFunctionsThatThrow(t *testing.T) {
	in := newQueues()
	s := newService()
	var told tale
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		told.add("%s", m.Value)
		return nil
	}, host.Workers(2), host.OnPanic(host.AsDrop), host.ByKeyFunc(func(m core.Message) string {
		switch string(m.Payload) {
		case "panic":
			panic("ouch")
		case "exit":
			runtime.Goexit()
		}
		return ""
	}))
	in.put("orders", "one", "panic", "exit", "two")
	s.serve(t)
	eventually(t, "all are settled", func() bool { return len(in.verdicts("orders")) == 4 })
	if diff := cmp.Diff([]string{"ack one", "ack two", "reject exit", "reject panic"}, in.verdicts("orders")); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "two"}, told.all()); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	lines := s.log.lines("code=L-PAN")
	if len(lines) != 2 || !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "ouch") && strings.Contains(l, "dispatch_test") }) ||
		!slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "Goexit") }) {
		t.Errorf("got %v, want a line for each with its reason, and the panic's stack", lines)
	}
}

// At most so many are begun a second, and a burst at once.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newQueues()
		s := newService()
		var began time.Time
		var got []time.Duration
		host.Handle(attach(s.Host, "in", in).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			got = append(got, time.Since(began).Round(time.Millisecond))
			return nil
		}, host.RateLimit(2, 2))
		in.put("orders", "1", "2", "3", "4", "5")
		began = time.Now()
		s.run(t)
		time.Sleep(time.Minute)
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond}, got); diff != "" {
			t.Errorf("begun (-want +got):\n%s", diff)
		}
	})
}

// While too many fail nothing is begun; one probe is, and with it all go on.
func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newQueues()
		s := newService()
		var began time.Time
		var told tale
		host.Handle(attach(s.Host, "in", in).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			at := time.Since(began)
			told.add("%v %s", at, m.Value)
			if at < 30*time.Second {
				return host.RetryAfter(time.Hour, nil)
			}
			return nil
		}, host.CircuitBreaker(host.Circuit{Of: 4, Pause: 10 * time.Second, Longest: 15 * time.Second}))
		in.put("orders", "1", "2", "3", "4", "5", "6", "7")
		began = time.Now()
		s.run(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		// Four fail and open it; the probes after 10 s and after 15 s more fail; the
		// one after another 15 s does not.
		want := []string{"0s 1", "0s 2", "0s 3", "0s 4", "10s 5", "25s 6", "40s 7"}
		if diff := cmp.Diff(want, told.lines); diff != "" {
			t.Errorf("begun (-want +got):\n%s", diff)
		}
		in.put("orders", "8")
		synctest.Wait()
		if n := len(told.all()); n != 8 {
			t.Errorf("%d were begun, want 8: the circuit is closed again", n)
		}
		s.Abort()
		<-s.done
	})
}
