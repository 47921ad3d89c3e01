// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// P-09: the host is told to stop the moment the 500th handler returns, five times:
// the broker has all acks, and the next host runs none of them again.
func TestP09AcksAtStop(t *testing.T) {
	t.Parallel()
	const rounds, n = 5, 500
	for round := range rounds {
		s := newService(t, rowOptions{})
		var runs atomic.Int64
		last := make(chan struct{})
		host.Handle(s.reads("t", settings.SubscribeOptions{}), func(_ context.Context, m *host.Message[[]byte]) error {
			if want := fmt.Sprint(round, " "); m.Attempt() != 1 || string(m.Value[:len(want)]) != want {
				t.Errorf("round %d: %q came, attempt %d", round, m.Value, m.Attempt())
			}
			if runs.Add(1) == n {
				close(last)
			}
			return nil
		}, host.Workers(4))
		s.Start()
		var payloads []string
		for i := range n {
			payloads = append(payloads, fmt.Sprint(round, " ", i))
		}
		s.put("t", texts(payloads...)...)
		select {
		case <-last:
		case <-time.After(servicetest.Limit):
			t.Fatalf("round %d: %d of %d were handled", round, runs.Load(), n)
		}
		s.stop(0)
		if got := runs.Load(); got != n {
			t.Errorf("round %d: %d runs, want %d", round, got, n)
		}
	}
}

// P-16: KeyShared with hosts that come and go: of two hosts a third one is started
// when 30 % are handled, and one is stopped when 60 % are. All are handled, and
// those of a key in order at first, but for what stands behind a message that came
// again later.
func TestP16KeySharedWhileScaling(t *testing.T) {
	t.Parallel()
	const keys, each = 20, 100
	const n, late = keys * each, "key 7 number 9"
	h := &handledBy{}
	join := func(by int) *service {
		s := newService(t, rowOptions{})
		s.Handle(s.reads("t", settings.SubscribeOptions{Type: settings.TypeKeyShared}), func(m *host.Message[[]byte]) error {
			h.add(by, m)
			time.Sleep(2 * time.Millisecond) // work: the others come while there is some
			if string(m.Value) == late && m.Attempt() == 1 {
				return host.RetryAfter(300*time.Millisecond, nil)
			}
			return nil
		}, host.Workers(4), host.ByKey())
		s.Start()
		t.Cleanup(func() { endAll(s) })
		return s
	}
	first, leaver := join(0), join(1)
	var ms []*lib.ProducerMessage
	for i := range n {
		key := fmt.Sprint("key ", i%keys)
		ms = append(ms, &lib.ProducerMessage{Key: key, Payload: []byte(fmt.Sprint(key, " number ", i/keys))})
	}
	first.put("t", ms[:n*3/10]...)
	h.await(first, n*3/10)
	join(2)
	first.put("t", ms[n*3/10:n*6/10]...)
	first.put("t", ms[n*6/10:]...)
	h.await(first, n*6/10)
	leaver.Cancel()
	leaver.Ended()
	first.left(0)
	runs := h.all()
	seen, next, at := map[string]int{}, map[string]int{}, map[int]bool{}
	for i, r := range runs {
		at[r.host] = true
		if seen[r.payload]++; seen[r.payload] > 1 {
			if r.payload != late {
				t.Errorf("run %d: %s is handled again, by host %d, attempt %d", i, r.payload, r.host, r.attempt)
			}
			continue
		}
		number, _ := strconv.Atoi(r.payload[len(r.key)+len(" number "):])
		if number != next[r.key] {
			t.Errorf("run %d: %s is handled by host %d, want number %d", i, r.payload, r.host, next[r.key])
		}
		next[r.key] = number + 1
	}
	if len(seen) != n || seen[late] != 2 || len(at) != 3 {
		t.Errorf("%d messages were handled, want %d; the late one %d times; at hosts %v", len(seen), n, seen[late], at)
	}
}
