// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// What docs/scaling.md says is shown here: three hosts, each with a plugin process
// of its own, on one subscription.

// handledBy is which of several hosts has handled what, in order.
type handledBy struct {
	mu   sync.Mutex
	runs []runBy
}

type runBy struct {
	host    int
	topic   string
	key     string
	payload string
	attempt uint64
}

func (h *handledBy) add(by int, m *host.Message[[]byte]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs = append(h.runs, runBy{by, m.Name(), m.Header("partition-key"), string(m.Value), m.Attempt()})
}

func (h *handledBy) all() []runBy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.runs)
}

// crew starts n hosts on topic t of the test; says is what their handlers say.
func crew(t *testing.T, n int, o settings.SubscribeOptions, says func(by int, m *host.Message[[]byte]) error, rules ...host.Rule) ([]*service, *handledBy) {
	t.Helper()
	h := &handledBy{}
	var all []*service
	for by := range n {
		s := newService(t, rowOptions{})
		s.Handle(s.reads("t", o), func(m *host.Message[[]byte]) error {
			h.add(by, m)
			if says == nil {
				return nil
			}
			return says(by, m)
		}, rules...)
		s.Start()
		all = append(all, s)
	}
	t.Cleanup(func() { endAll(all...) })
	return all, h
}

// endAll ends hosts, whatever they have handled.
func endAll(all ...*service) {
	for _, s := range all {
		s.Cancel()
		s.Ended()
	}
}

// await waits for n runs in all.
func (h *handledBy) await(s *service, n int) []runBy {
	s.t.Helper()
	s.Eventually(fmt.Sprintf("%d runs", n), func() bool { return len(h.all()) >= n })
	return h.all()
}

// by counts the runs of each host.
func by(runs []runBy, hosts int) []int {
	counts := make([]int, hosts)
	for _, r := range runs {
		counts[r.host]++
	}
	return counts
}

// once reports a payload that was not handled exactly once.
func once(t *testing.T, runs []runBy, n int) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range runs {
		seen[r.payload]++
	}
	for p, times := range seen {
		if times != 1 {
			t.Errorf("%s was handled %d times", p, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d messages were handled, want %d", len(seen), n)
	}
}

// numbered are n messages of keys, one key after the other.
func numbered(n int, keys ...string) (ms []*lib.ProducerMessage) {
	for i := range n {
		m := &lib.ProducerMessage{Payload: []byte(strconv.Itoa(i))}
		if len(keys) > 0 {
			m.Key = keys[i%len(keys)]
		}
		ms = append(ms, m)
	}
	return ms
}

// Shared: each message goes to one host, and each host gets some. A message that
// fails is counted over all hosts: three attempts, whoever makes them.
func TestThreeHostsShareMessages(t *testing.T) {
	t.Parallel()
	const n = 300
	failing := func(_ int, m *host.Message[[]byte]) error {
		if string(m.Value) == "7" && m.Attempt() < 3 {
			return host.Retry(nil)
		}
		return nil
	}
	all, h := crew(t, 3, settings.SubscribeOptions{}, failing, host.Workers(4))
	all[0].put("t", numbered(n)...)
	runs := h.await(all[0], n+2)
	all[0].left(0)
	var attempts []uint64
	runs = slices.DeleteFunc(runs, func(r runBy) bool {
		if r.payload == "7" {
			attempts = append(attempts, r.attempt)
		}
		return r.payload == "7"
	})
	once(t, runs, n-1)
	if !slices.Equal(attempts, []uint64{1, 2, 3}) {
		t.Errorf("the one that fails had attempts %v", attempts)
	}
	for i, got := range by(runs, 3) {
		if got == 0 {
			t.Errorf("host %d got nothing: %v", i, by(runs, 3))
		}
	}
}

// KeyShared: what has one key goes to one host, in order, while another host takes
// other keys.
func TestThreeHostsKeepTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	const n = 600
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint("ship ", i))
	}
	all, h := crew(t, 3, settings.SubscribeOptions{Type: settings.TypeKeyShared}, nil, host.Workers(4), host.ByKey())
	all[0].put("t", numbered(n, keys...)...)
	runs := h.await(all[0], n)
	all[0].left(0)
	once(t, runs, n)
	last, at := map[string]int{}, map[string]int{}
	for _, r := range runs {
		number, _ := strconv.Atoi(r.payload)
		if was, ok := last[r.key]; ok && number < was {
			t.Errorf("key %s: %d behind %d", r.key, number, was)
		}
		if was, ok := at[r.key]; ok && was != r.host {
			t.Errorf("key %s is at hosts %d and %d", r.key, was, r.host)
		}
		last[r.key], at[r.key] = number, r.host
	}
	busy := 0
	for _, got := range by(runs, 3) {
		if got > 0 {
			busy++
		}
	}
	if busy < 2 {
		t.Errorf("20 keys are at %d hosts: %v", busy, by(runs, 3))
	}
}

// Failover: each partition is read by one host, in order; of three hosts and two
// partitions one waits. When a host leaves the others take over, and nothing is lost.
func TestThreeHostsTakeOverPartitions(t *testing.T) {
	t.Parallel()
	const n = 200
	s := newService(t, rowOptions{})
	s.b.CreatePartitioned(s.topic("t"), 2)
	all, h := crew(t, 3, settings.SubscribeOptions{Type: settings.TypeFailover}, nil)
	all[0].put("t", numbered(n, "a", "b", "c", "d")...)
	runs := h.await(all[0], n)
	once(t, runs, n)
	at := map[string]int{}
	for _, r := range runs {
		if was, ok := at[r.key]; ok && was != r.host {
			t.Errorf("key %s, and its partition, are at hosts %d and %d", r.key, was, r.host)
		}
		at[r.key] = r.host
	}
	counts := by(runs, 3)
	if idle := slices.Index(counts, 0); idle < 0 {
		t.Errorf("three hosts read two partitions: %v", counts)
	}
	busiest := slices.Index(counts, slices.Max(counts))
	endAll(all[busiest])
	rest := all[(busiest+1)%3]
	rest.put("t", numbered(n, "a", "b", "c", "d")...)
	for _, r := range h.await(rest, 2*n)[n:] {
		if r.host == busiest {
			t.Fatalf("%s was handled by the host that has left", r.payload)
		}
	}
}

// Of a host whose handler does not return so many messages of a topic are unacked at
// most: its window, its receiver queue, and what is on its way between the two, in
// batches of 64 at most.
func TestUnackedOfOneHost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		window, queue, n int
		most             int64
	}{
		"the defaults": {1024, 1000, 4000, 3300}, "small": {50, 100, 1000, 500}, "one": {1, 1, 100, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			s := newService(t, rowOptions{})
			s.Handle(s.reads("t", settings.SubscribeOptions{ReceiverQueue: tt.queue}, host.Window(tt.window, 0)), func(*host.Message[[]byte]) error {
				<-release
				return nil
			})
			s.Start()
			p, err := s.raw.CreateProducer(lib.ProducerOptions{Topic: s.topic("t"), DisableBatching: true, SendTimeout: -1})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range numbered(tt.n) {
				p.SendAsync(t.Context(), m, func(lib.MessageID, *lib.ProducerMessage, error) {})
			}
			if err := p.FlushWithCtx(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Close()
			var unacked, last int64 = 0, -1
			s.Eventually("no more is read", func() bool {
				unacked, last = s.b.Stats(s.topic("t")).Subscriptions[sub].Unacked, unacked
				return unacked == last && unacked > int64(tt.window)
			})
			if unacked > tt.most {
				t.Errorf("%d messages are unacked, want %d at most", unacked, tt.most)
			}
			close(release)
			s.left(0)
			endAll(s)
		})
	}
}

// The broker keeps counts in its memory: a topic that is unloaded, as it is when the
// broker restarts, has none any more.
func TestUnloadResetsCounts(t *testing.T) {
	t.Parallel()
	held, release := make(chan struct{}), make(chan struct{})
	all, h := crew(t, 1, settings.SubscribeOptions{}, func(_ int, m *host.Message[[]byte]) error {
		select {
		case <-held:
			return nil // it has come again
		default:
		}
		if m.Attempt() < 3 {
			return host.Retry(nil)
		}
		close(held)
		<-release
		return nil
	}, host.Workers(2))
	s := all[0]
	s.put("t", numbered(1)...)
	<-held
	s.b.Unload(s.topic("t"))
	var attempts []uint64
	for _, r := range h.await(s, 4) {
		attempts = append(attempts, r.attempt)
	}
	close(release)
	s.left(0)
	if !slices.Equal(attempts, []uint64{1, 2, 3, 1}) {
		t.Errorf("attempts %v, want a first one behind the third", attempts)
	}
}
