// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// anyPort is an address of a free port.
const anyPort = "tcp://127.0.0.1:0"

func zmqPlugin(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/zmq/longshore-transport-zmq")
}

// zmq attaches the ZeroMQ transport.
func (s *service) zmq(name string, set settings.Settings) *host.Endpoint {
	s.t.Helper()
	return s.Endpoint(name, host.Plugin{Name: "zmq", Path: zmqPlugin(s.t)}, set)
}

func bound(pattern, address string) settings.Settings {
	return settings.Settings{Pattern: pattern, Bind: address}
}

func dialing(pattern string, addresses ...string) settings.Settings {
	return settings.Settings{Pattern: pattern, Connect: addresses}
}

// at returns where an endpoint listens.
func (s *service) at(e *host.Endpoint) string {
	s.t.Helper()
	as := e.Addresses()
	if len(as) != 1 || strings.HasSuffix(as[0], ":0") {
		s.t.Fatalf("endpoint %s listens at %v", e.Name(), as)
	}
	return as[0]
}

// pid returns the process of an endpoint's plugin that was started last.
func (s *service) pid(endpoint string) int {
	s.t.Helper()
	lines := s.log.with(pluginStarted, func(l line) bool { return l.text("msg") == pluginStarted && l.text("endpoint") == endpoint })
	if len(lines) == 0 {
		s.t.Fatalf("no plugin of %s was started", endpoint)
	}
	pid, _ := lines[len(lines)-1]["pid"].(float64)
	return int(pid)
}

// notes handles a subscription: each run is noted by its payload, then f says
// what becomes of it.
func (s *service) notes(sub *host.Subscription, f func(m *host.Message[[]byte]) error, rules ...host.Rule) *tally {
	runs := newTally()
	s.notesAs(sub, runs, func(m *host.Message[[]byte]) string { return string(m.Value) }, f, rules...)
	return runs
}

// notesAs is notes under a name that is not the payload.
func (s *service) notesAs(sub *host.Subscription, runs *tally, name func(m *host.Message[[]byte]) string, f func(m *host.Message[[]byte]) error, rules ...host.Rule) {
	host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
		runs.ran(name(m), m.Attempt())
		return f(m)
	}, rules...)
}

// elsewhere is a rule that what dials, or answers, needs for copies: a queue that
// nobody reads.
func (s *service) elsewhere() host.Rule {
	s.t.Helper()
	return host.RetryTo(s.zmq("copies", bound(settings.PatternQueue, anyPort)).To("copies"))
}

// serves runs the host until it serves, whether its peers are there or not.
func (s *service) serves() {
	s.t.Helper()
	s.start()
	eventually(s.t, "the host serves", func() bool {
		select {
		case <-s.done:
			s.t.Fatalf("the host does not start: %v", s.err)
		default:
		}
		return len(s.log.having("INFO", "host serves")) > 0
	})
}

// acks is a handler for notes.
func acks(*host.Message[[]byte]) error { return nil }

// total is how many runs there were, and distinct for how many keys.
func (r *tally) total() (runs, distinct int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.n {
		runs += n
	}
	return runs, len(r.n)
}

// keys returns what ran, sorted.
func (r *tally) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for k := range r.n {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// counters returns those of a subscription.
func (s *service) counters(subscription string) host.Counters {
	s.t.Helper()
	for _, e := range s.Health().Endpoints {
		for _, sub := range e.Subscriptions {
			if sub.Name == subscription {
				return sub.Counters
			}
		}
	}
	s.t.Fatalf("there is no subscription %s", subscription)
	return host.Counters{}
}

// lines returns the lines of a level, "" = any, that have all of words in them.
func (b *book) having(level string, words ...string) []line {
	return b.with(level, func(l line) bool {
		if level != "" && l.text("level") != level {
			return false
		}
		text := fmt.Sprint(map[string]any(l))
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

// freeAddress returns an address that is the test's, also while a service is away.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("tcp://127.0.0.1:%d", freeport.Hold(t))
}

// openFiles counts the descriptors of a process.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	return len(entries)
}

// numbered are the messages m0001 and so on.
func numbered(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("m%04d", i+1))
	}
	return out
}

// sends publishes payloads in order, with all their receipts at the end.
func (s *service) sends(ctx context.Context, to *host.Publisher[[]byte], payloads ...string) {
	s.t.Helper()
	var pending []*host.Pending
	for _, p := range payloads {
		r, err := to.PublishAsync(ctx, []byte(p))
		if err != nil {
			s.t.Fatalf("publish %.20s: %v", p, err)
		}
		pending = append(pending, r)
	}
	for i, r := range pending {
		if _, err := r.Receipt(ctx); err != nil {
			s.t.Fatalf("publish %.20s: %v", payloads[i], err)
		}
	}
}

// to publishes to a name of an endpoint.
func (s *service) to(e *host.Endpoint, name string) *host.Publisher[[]byte] {
	return host.To[[]byte](s.Host, e.To(name))
}

// frames shows messages of libzmq's sockets as text.
func frames(messages [][][]byte) [][]string {
	var out [][]string
	for _, m := range messages {
		var one []string
		for _, f := range m {
			one = append(one, string(f))
		}
		out = append(out, one)
	}
	return out
}
