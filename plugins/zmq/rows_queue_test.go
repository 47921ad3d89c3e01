// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
)

// Whatever is declared, an ack cannot be carried out here and nobody misses it.
func TestS_ZMQ_01(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.says(nil, host.MaxAttempts(2), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		for i := range 20 {
			s.put(fmt.Sprint(i), "x-ruststream-retry-count", fmt.Sprint(i%2))
		}
		s.Handled(20)
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.once("L-UNS")
	})
}

func TestS_ZMQ_02(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.says(host.Drop(errHandler), host.MaxAttempts(2), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		for range 20 {
			s.put("x")
		}
		s.Handled(20)
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.once("L-UNS")
	})
}

func TestS_ZMQ_03(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		s.says(host.Retry(nil))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(1), "jobs 1 x")
		servicetest.Expect(t, "sent back", s.far.rest())
		s.Stop()
		s.codes(map[string]int{"L-UNS": 1})
	})
}

func TestS_ZMQ_04(t *testing.T) {
	const d = 200 * time.Millisecond
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		var seen []string
		var ran clock
		s.Handle(s.sub, ran.noting(func(m *host.Message[[]byte]) error {
			seen = append(seen, servicetest.Text(m.Name(), m.Payload(), m.Headers()))
			return untilAttempt(2, host.RetryAfter(d, nil))(m)
		}))
		s.begin()
		s.put(`{"id":7}`)
		servicetest.Expect(t, "first run", s.Ran(1), `jobs 1 {"id":7}`)
		servicetest.Expect(t, "the copy", s.Ran(1), `jobs 2 {"id":7}`)
		delayed(t, ran.run(1).Sub(ran.run(0)), d)
		s.Stop()
		servicetest.Expect(t, "deliveries", seen, `jobs {"id":7}`, copied("jobs", `{"id":7}`, 1))
		s.codes(nil)
	})
}

func TestS_ZMQ_05(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		s.Handle(s.sub, untilAttempt(2, host.RetryAfter(0, nil)))
		s.begin()
		s.put("x", "a", "b", "A", "c")
		servicetest.Expect(t, "runs", s.Ran(2), "jobs 1 x", "jobs 2 x")
		s.Stop()
		s.codes(nil)
	})
}

func TestS_ZMQ_06(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		var seen []string
		s.Handle(s.sub, func(m *host.Message[[]byte]) error {
			seen = append(seen, servicetest.Text(m.Name(), m.Payload(), m.Headers()))
			return host.Retry(nil)
		}, host.MaxAttempts(3))
		s.begin()
		s.put("x", "Tenant", "a", "tenant", "b")
		servicetest.Expect(t, "runs", s.Handled(3), "jobs 1 x", "jobs 2 x", "jobs 3 x")
		s.Stop()
		const sent = "jobs x Tenant=a tenant=b" // as sent, every line
		servicetest.Expect(t, "deliveries", seen, sent, sent+" x-ruststream-retry-count=1", sent+" x-ruststream-retry-count=2")
		s.codes(map[string]int{"L-CAP-RJ": 1})
	})
}

func TestS_ZMQ_07(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.Handle(s.sub, untilAttempt(2, host.Retry(nil)), host.MaxAttempts(3), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Ran(2), "jobs 1 x", "jobs 2 x")
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(nil)
	})
}

func TestS_ZMQ_08(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.says(host.Retry(nil), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(1), "jobs 1 x")
		servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)), s.deadLetter("q", "x", 1, 1, ""))
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(nil)
	})
}

func TestS_ZMQ_09(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.says(host.RetryAfter(time.Hour, nil), host.MaxAttempts(1), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(1), "jobs 1 x")
		servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)), s.deadLetter("q", "x", 1, 1, ""))
		s.Stop()
		s.codes(map[string]int{"L-CAP-DL": 1})
	})
}

func TestS_ZMQ_11(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.says(host.Retry(nil), host.MaxAttempts(3), host.RetryTo(s.other.To("jobs")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(1), "jobs 1 x")
		servicetest.Expect(t, "elsewhere", s.q.got(1), copied("jobs", "x", 1))
		s.Stop()
		s.codes(nil)
	})
}

func TestS_ZMQ_12(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		s.says(host.Retry(nil), host.MaxAttempts(3))
		s.begin()
		s.put("x", "X-RustStream-Retry-Count", "2")
		servicetest.Expect(t, "runs", s.Handled(1), "jobs 3 x")
		s.Stop()
		s.codes(map[string]int{"L-CAP-RJ": 1})
	})
}

// What libzmq's peers can send and nobody can read.
func TestS_ZMQ_13(t *testing.T) {
	for name, frames := range map[string][]string{
		"a header line without a colon":    {"jobs", "a: b\nno header", "x"},
		"a header frame that is not UTF-8": {"jobs", "a: \xff", "x"},
		"a name that is not UTF-8":         {"jobs\xff", "", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, foreign{}, queueBound)
			s.says(host.Leave(), host.MaxAttempts(3))
			s.begin()
			far := s.far.(*foreignEnd)
			far.s.Send(frames...)
			s.put("next")
			if d := s.Settlement(); d.Result != host.ResultReleased && d.Result != host.ResultDropped || d.Err == nil {
				t.Errorf("settled as %v, %v", d.Result, d.Err)
			}
			servicetest.Expect(t, "runs", s.Ran(1), "jobs 1 next")
			counters := s.Health().Endpoints[0].Subscriptions[0].Counters
			if counters.Received != 2 || counters.Dropped != 1 {
				t.Errorf("counters %+v", counters)
			}
			s.Stop()
			s.codes(map[string]int{"L-DEC": 1})
		})
	}
}

// The senders share their messages out among all who read; the copy of one comes
// back to who had it.
func TestS_ZMQ_14(t *testing.T) {
	const n = 10
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		s.Handle(s.sub, untilAttempt(2, host.Retry(nil)), host.MaxAttempts(3))
		s.Start()
		beside := p.open(t, "PULL", where{bind: anyPort})
		s.far = p.open(t, "PUSH", where{connect: []string{s.address(s.in), beside.address()}})
		sent := 0
		var took []string
		for len(took) == 0 { // until both are connected
			s.put(fmt.Sprint("early ", sent))
			sent++
			took = beside.rest()
		}
		for i := range 2 * n {
			s.put(fmt.Sprint(i))
		}
		s.Eventually("all have come", func() bool {
			took = append(took, beside.rest()...)
			return len(s.Runs()) == 2*(sent+2*n-len(took))
		})
		runs := s.Ran(2 * (sent + 2*n - len(took)))
		count := map[string]int{}
		for _, r := range runs {
			count[r]++
		}
		for r, times := range count {
			if times != 1 {
				t.Errorf("%d runs of %s", times, r)
			}
		}
		if len(took) < n {
			t.Errorf("those beside have %q", took)
		}
		for _, text := range took {
			if strings.Contains(text, "x-ruststream-retry-count") {
				t.Errorf("those beside have a copy: %s", text)
			}
		}
		s.Stop()
		servicetest.Expect(t, "beside", beside.rest())
		s.codes(nil)
	})
}

// A copy that nothing can carry is lost, and a dead letter never is.
func TestS_ZMQ_35(t *testing.T) {
	for name, h := range map[string][2]string{"a value": {"x-odd", "a\nb"}, "a name": {"x:odd", "ab"}} {
		t.Run(name, func(t *testing.T) {
			parties(t, func(t *testing.T, p party) {
				odd := func(next host.Next) host.Next {
					return func(ctx context.Context, m host.Incoming) error {
						m.Headers()[0] = core.Header{Name: h[0], Value: []byte(h[1])}
						return next(ctx, m)
					}
				}
				s := newService(t, p, queueBound)
				s.says(host.Retry(nil), host.MaxAttempts(2), host.Middleware(odd))
				s.begin()
				s.put("x", "a", "b")
				servicetest.Expect(t, "runs", s.Handled(1), "jobs 1 x")
				s.Stop()
				s.codes(map[string]int{"L-LOST": 1})
				if len(s.Log.Lines("code=L-LOST", "jobs", h[0])) != 1 {
					t.Errorf("the header or the destination is not named\n%s", s.Log)
				}

				s = withOther(t, p, queueBound)
				s.says(host.Retry(nil), host.MaxAttempts(1), host.DeadLetterTo(s.other.To("q")), host.Middleware(odd))
				s.begin()
				s.put("x", "a", "b")
				s.Handled(1)
				servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)), s.deadLetter("q", "x", 1, 1, "")+" x-longshore-headers="+block(h[0], h[1]))
				s.Stop()
				s.codes(map[string]int{"L-CAP-DL": 1})
			})
		})
	}
}

// block is one header as x-longshore-headers has it.
func block(name, value string) string {
	var b []byte
	for _, s := range []string{name, value} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func TestS_ZMQ_40(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, queueBound)
		s.says(host.Retry(nil), host.MaxAttempts(3), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		s.put("x", "a", "b")
		servicetest.Expect(t, "runs", s.Handled(3), "jobs 1 x", "jobs 2 x", "jobs 3 x")
		servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)), s.deadLetter("q", "x", 3, 3, " a=b"))
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(map[string]int{"L-CAP-DL": 1})
	})
}

// The cap comes first, at once.
func TestS_ZMQ_43(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, queueBound)
		s.Handle(s.sub, func(m *host.Message[[]byte]) error {
			if m.Attempt() == 1 {
				return host.RetryAfter(50*time.Millisecond, nil)
			}
			return host.RetryAfter(time.Hour, nil)
		}, host.MaxAttempts(2))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(2), "jobs 1 x", "jobs 2 x")
		s.Stop()
		s.codes(map[string]int{"L-CAP-RJ": 1})
	})
}
