// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// payloads are the payloads of n messages.
func payloads(n int) (ps []string) {
	for i := range n {
		ps = append(ps, fmt.Sprintf("m%04d", i+1))
	}
	return ps
}

// spaced publishes messages at intervals.
func (s *service) spaced(short string, every time.Duration, ps ...string) {
	s.t.Helper()
	p, err := s.raw.CreateProducer(lib.ProducerOptions{Topic: s.topic(short), DisableBatching: true, SendTimeout: -1})
	if err != nil {
		s.t.Fatal(err)
	}
	defer p.Close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for _, text := range ps {
		if _, err := p.Send(s.t.Context(), &lib.ProducerMessage{Payload: []byte(text)}); err != nil {
			s.t.Fatal(err)
		}
		<-tick.C
	}
}

// returns is a service whose handler says something at the first attempts, and what
// it took from then to the second ones. Every other message is retried at once beside
// them: these show how fast the machine is.
func returns(t *testing.T, n int, every time.Duration, says error) (took, beside []time.Duration) {
	t.Helper()
	s := newService(t, rowOptions{})
	said := map[string]time.Time{} // one worker
	s.Handle(s.reads("t", settings.SubscribeOptions{}), func(m *host.Message[[]byte]) error {
		name := string(m.Value)
		again := strings.HasPrefix(name, "beside ")
		if m.Attempt() == 1 {
			if said[name] = time.Now(); again {
				return host.Retry(nil)
			}
			return says
		}
		if d := time.Since(said[name]); again {
			beside = append(beside, d)
		} else {
			took = append(took, d)
		}
		return nil
	})
	s.Start()
	var texts []string
	for _, text := range payloads(n) {
		texts = append(texts, text, "beside "+text)
	}
	s.spaced("t", every/2, texts...)
	s.Handled(4 * n)
	s.left(0)
	s.stop(0)
	s.codes(nil)
	return took, beside
}

// P-01: 20 messages, each of which fails once, are there again at once: a library's own
// delay is a minute.
func TestP01RetryAtOnce(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	took, beside := returns(t, 10, 2*time.Millisecond, host.Retry(nil))
	for _, d := range append(took, beside...) {
		if d > limit {
			t.Errorf("one came again after %v", d)
		}
	}
}

// P-02: 50 messages that are retried after 2 s, and due at times that lie close
// together: none comes before its time, none is passed over until a later look.
func TestP02RetryAfterIsPrecise(t *testing.T) {
	t.Parallel()
	const delay, late = 2 * time.Second, time.Second
	took, beside := returns(t, 50, 40*time.Millisecond, host.RetryAfter(delay, nil))
	slices.Sort(took)
	slices.Sort(beside)
	t.Logf("%v to %v; what is retried at once, %v to %v", took[0], took[49], beside[0], beside[49])
	// A busy machine may stand still for longer than the second, but not for many of them.
	if most, limit := took[45], delay+late+5*beside[45]; took[0] < delay || most > limit {
		t.Errorf("nine in ten came after %v to %v, want %v to %v", took[0], most, delay, limit)
	}
}

// P-03: a cap is the number of runs, whichever way a handler asks for the next one.
func TestP03CapIsRuns(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]error{"retry": host.Retry(nil), "retry after": host.RetryAfter(200*time.Millisecond, nil)} {
		for _, limit := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				t.Parallel()
				s := newService(t, rowOptions{})
				s.Handle(s.reads("t", settings.SubscribeOptions{}), servicetest.Always(says), s.dead(host.MaxAttempts(limit))...)
				s.Start()
				id := s.put("t", texts("x")...)[0]
				var want []any
				for attempt := range limit {
					want = append(want, attempt+1, "x")
				}
				s.handled(limit, want...)
				s.left(0)
				nothing(t, s.deadOf(s.letters(1)[0], "x", limit, id))
				s.stop(0)
				s.codes(map[string]int{"L-CAP-DL": 1})
			})
		}
	}
}

// P-04: a cap that is none, and one half of cap and dead letter, are refused with the
// registration and the rule, and nothing has been dialed. That a cap of one is one run
// shows TestP03CapIsRuns.
func TestP04CapsThatAreNone(t *testing.T) {
	t.Parallel()
	const alone = 1 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var dialed atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			dialed.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	for name, tt := range map[string]struct {
		caps []int // and a dead letter, unless alone is among them
		rule string
	}{
		"zero": {[]int{0}, "MaxAttempts"}, "negative": {[]int{-1}, "MaxAttempts"},
		"dead letter alone": {nil, "MaxAttempts"}, "cap alone": {[]int{3, alone}, "DeadLetterTo"}, "cap alone, of one": {[]int{1, alone}, "DeadLetterTo"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servicetest.New(t)
			in := s.Endpoint("in", host.Plugin{Name: "pulsar", Path: pluginPath(t)}, settings.Settings{URL: settings.URL("pulsar://" + l.Addr().String())})
			var rules []host.Rule
			for _, n := range tt.caps {
				if n != alone {
					rules = append(rules, host.MaxAttempts(n))
				}
			}
			if !slices.Contains(tt.caps, alone) {
				rules = append(rules, host.DeadLetterTo(in.To("graves")))
			}
			s.Handle(in.Subscription("orders", host.Options(settings.SubscribeOptions{Subscription: sub})), servicetest.Always(nil), rules...)
			s.Launch()
			e, ok := errors.AsType[*host.StartError](s.Wait())
			if !ok || len(e.Findings) == 0 {
				t.Fatalf("the host ended with %v", s.Wait())
			}
			for _, f := range e.Findings { // a cap that is none is none beside the dead letter, too
				if f.Subscription != "orders" || f.Option != tt.rule || f.Fix == "" {
					t.Errorf("finding %+v, want one of %s", f, tt.rule)
				}
			}
			if n := dialed.Load(); n != 0 {
				t.Errorf("%d connections", n)
			}
		})
	}
}
