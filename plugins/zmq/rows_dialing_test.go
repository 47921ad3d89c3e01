// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Copies of what cannot take its own leave by another endpoint, with the reply-to
// and correlation-id of a request.
func copiesLeave(t *testing.T, from ...source) {
	each(t, from, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		s.says(host.Retry(nil), host.MaxAttempts(3), host.RetryTo(s.other.To("t")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(1), s.run(1, "x"))
		servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)), copied("t", "x"+s.asked(), 1))
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(nil)
	})
}

func TestS_ZMQ_17(t *testing.T) { copiesLeave(t, queueDialing) }
func TestS_ZMQ_28(t *testing.T) { copiesLeave(t, fanOutDialing) }
func TestS_ZMQ_31(t *testing.T) { copiesLeave(t, rpcBound, rpcDialing) }

// Nothing is declared by a destination alone.
func TestS_ZMQ_18(t *testing.T) {
	each(t, []source{queueDialing}, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		s.says(host.Retry(nil), host.RetryTo(s.other.To("t")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(1), "jobs 1 x")
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(map[string]int{"L-UNS": 1})
	})
}

// Each try waits for a peer, tries go on for as long as copies are tried, and
// then the message is lost and named.
func TestS_ZMQ_19(t *testing.T) {
	const wait, limit = 200 * time.Millisecond, 2 * time.Second
	for name, other := range map[string]settings.Settings{
		"dialing": dials(settings.PatternQueue, closed), "bound": binds(settings.PatternQueue, anyPort),
	} {
		t.Run(name, func(t *testing.T) {
			parties(t, func(t *testing.T, p party) {
				s := newService(t, p, queueBound, host.WithPublishLimit(limit))
				other := other
				other.PeerWait = core.Duration(wait)
				s.other = s.attach("other", other)
				s.says(host.Retry(nil), host.MaxAttempts(3), host.RetryTo(s.other.To("jobs")))
				s.Launch() // it is not ready without its peer
				s.Eventually("the host serves", func() bool { return len(s.Log.Lines("host serves")) > 0 })
				s.far = p.open(t, "PUSH", where{connect: []string{s.address(s.in)}})
				began := time.Now()
				s.put("x")
				servicetest.Expect(t, "runs", s.Ran(1), "jobs 1 x")
				if d := s.Settlement(); d.Result != host.ResultDropped {
					t.Errorf("settled as %v, %v", d.Result, d.Err)
				}
				// No try begins within the last second.
				if took := time.Since(began); took < limit-1500*time.Millisecond || took > 15*limit {
					t.Errorf("given up after %v", took)
				}
				if n := s.Health().Endpoints[0].Subscriptions[0].Counters.Lost; n != 1 {
					t.Errorf("%d are counted as lost", n)
				}
				s.Stop()
				if s.Log.Coded("L-LOST") != 1 || s.Log.Coded("L-UNS") != 0 || len(s.Log.Lines("code=L-LOST", "level=ERROR", "jobs", "other", "no connected peer")) != 1 {
					t.Errorf("the log:\n%s", s.Log)
				}
			})
		})
	}
}

func TestS_ZMQ_32(t *testing.T) {
	each(t, elsewhere, func(t *testing.T, p party, from source) {
		for name, says := range map[string]error{"ack": nil, "drop": host.Drop(errHandler), "retry": host.Retry(nil)} {
			t.Run(name, func(t *testing.T) {
				n := 20
				if name == "retry" {
					n = 1
				}
				s := withOther(t, p, from)
				s.says(says, host.RetryTo(s.other.To("t")))
				s.begin()
				for range n {
					s.put("x")
				}
				s.Handled(n)
				servicetest.Expect(t, "sent back", s.far.rest()) // who asks is left to time out
				s.Stop()
				servicetest.Expect(t, "elsewhere", s.q.rest())
				s.once("L-UNS")
				if name == "retry" {
					s.codes(map[string]int{"L-UNS": 1})
				}
			})
		}
	})
}

// The queue that copies go to is one of the same host, whose registration has a
// cap of its own.
func TestS_ZMQ_41(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		first := newService(t, p, queueDialing)
		other := first.attach("other", binds(settings.PatternQueue, anyPort))
		first.says(host.Retry(nil), host.MaxAttempts(3), host.RetryTo(other.To("jobs")))
		ran := make(chan string, 10)
		settled := make(chan host.Settled, 10)
		host.Handle(other.Subscription("jobs"), func(_ context.Context, m *host.Message[[]byte]) error {
			ran <- servicetest.Text(m.Name(), m.Payload(), m.Headers())
			return host.Retry(nil)
		}, host.MaxAttempts(4), host.AfterSettle(func(_ context.Context, d host.Settled) { settled <- d }))
		first.begin()
		first.put("x", "a", "b")
		servicetest.Expect(t, "runs of what dials", first.Handled(1), "jobs 1 x")
		var runs []string
		results := map[host.Result]int{}
		for range 3 {
			runs = append(runs, <-ran)
			results[(<-settled).Result]++
		}
		servicetest.Expect(t, "runs of what is bound", runs, copied("jobs", "x a=b", 1), copied("jobs", "x a=b", 2), copied("jobs", "x a=b", 3))
		if results[host.ResultRetried] != 2 || results[host.ResultDropped] != 1 {
			t.Errorf("settled as %v", results)
		}
		first.Stop()
		if n := len(ran); n != 0 {
			t.Errorf("%d runs more", n)
		}
		first.codes(map[string]int{"L-CAP-RJ": 1})
		if len(first.Log.Lines("code=L-CAP-RJ", "attempt=4")) != 1 {
			t.Errorf("log:\n%s", first.Log)
		}
	})
}

func TestS_ZMQ_44(t *testing.T) {
	const d = 200 * time.Millisecond
	each(t, elsewhere, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		var ran clock
		s.Handle(s.sub, ran.noting(servicetest.Always(host.RetryAfter(d, nil))), host.RetryTo(s.other.To("t")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Ran(1), s.run(1, "x"))
		servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)), copied("t", "x"+s.asked(), 1))
		delayed(t, time.Since(ran.run(0)), d)
		s.Stop()
		s.codes(nil)
	})
}

func TestS_ZMQ_45(t *testing.T) {
	each(t, elsewhere, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		s.says(host.Retry(nil), host.MaxAttempts(2), host.RetryTo(s.other.To("t")), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		s.put("x", "x-ruststream-retry-count", "1")
		servicetest.Expect(t, "runs", s.Handled(1), s.run(2, "x"))
		got := shape(t, s.q.got(1))
		if !strings.HasPrefix(got[0], "q x ") || !strings.Contains(got[0], "x-ruststream-retry-count=2") || !strings.Contains(got[0], "x-longshore-attempts=2") {
			t.Errorf("the dead letter: %q", got)
		}
		s.Stop()
		s.codes(map[string]int{"L-CAP-DL": 1})

		s = withOther(t, p, from)
		s.says(host.Retry(nil), host.MaxAttempts(2), host.RetryTo(s.other.To("t")))
		s.begin()
		s.put("x", "x-ruststream-retry-count", "1")
		servicetest.Expect(t, "runs", s.Handled(1), s.run(2, "x"))
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(map[string]int{"L-CAP-RJ": 1})
	})
}
