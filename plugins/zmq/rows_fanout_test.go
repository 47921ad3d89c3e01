// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
)

func TestS_ZMQ_20(t *testing.T) {
	for name, says := range map[string]error{"ack": nil, "drop": host.Drop(errHandler)} {
		t.Run(name, func(t *testing.T) {
			parties(t, func(t *testing.T, p party) {
				s := newService(t, p, fanOutBound)
				s.says(says)
				s.begin()
				for range 20 {
					s.put("x")
				}
				s.Handled(20)
				s.Stop()
				s.once("L-UNS")
			})
		})
	}
	t.Run("retry", func(t *testing.T) {
		parties(t, func(t *testing.T, p party) {
			s := newService(t, p, fanOutBound)
			s.says(host.Retry(nil))
			s.begin()
			s.put("x")
			servicetest.Expect(t, "runs", s.Handled(1), "events 1 x")
			s.Stop()
			s.codes(map[string]int{"L-UNS": 1})
		})
	})
}

func TestS_ZMQ_21(t *testing.T) {
	const d = 200 * time.Millisecond
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, fanOutBound)
		var ran clock
		s.Handle(s.sub, ran.noting(untilAttempt(2, host.RetryAfter(d, nil))))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "first run", s.Ran(1), "events 1 x")
		servicetest.Expect(t, "the copy", s.Ran(1), "events 2 x")
		delayed(t, ran.run(1).Sub(ran.run(0)), d)
		s.Stop()
		s.codes(nil)
	})
}

// The publisher has another subscriber, which sees what is sent and no copy.
func TestS_ZMQ_22(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, fanOutBound)
		s.Handle(s.sub, untilAttempt(2, host.Retry(nil)), host.MaxAttempts(2))
		s.Start()
		beside := p.open(t, "SUB", where{bind: anyPort, prefix: "events"})
		s.far = p.open(t, "PUB", where{connect: []string{s.address(s.in), beside.address()}})
		sent := 0
		var seen []string
		for len(seen) == 0 || len(s.Runs()) == 0 { // until both have subscribed
			s.put(fmt.Sprint(sent))
			sent++
			seen = append(seen, beside.rest()...)
		}
		s.put("last")
		for seen[len(seen)-1] != "events last" {
			seen = append(seen, beside.got(1)...)
		}
		runs := s.Ran(2)
		for runs[len(runs)-1] != "events 2 last" {
			runs = append(runs, s.Ran(1)...)
		}
		seen = append(seen, beside.rest()...)
		for _, text := range seen {
			if strings.Contains(text, "x-ruststream-retry-count") {
				t.Errorf("the one beside has a copy: %s", text)
			}
		}
		if seen[len(seen)-1] != "events last" {
			t.Errorf("the one beside has %q", seen)
		}
		s.Stop()
		s.codes(nil)
	})
}

func TestS_ZMQ_23(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := newService(t, p, fanOutBound)
		s.Handle(s.sub, untilAttempt(2, host.Retry(nil)), host.MaxAttempts(2))
		s.begin()
		s.far.put("events.eu", "x")
		servicetest.Expect(t, "runs", s.Ran(2), "events.eu 1 x", "events 2 x")
		s.far.try("event", "outside the prefix")
		s.far.put("events", "y")
		servicetest.Expect(t, "runs", s.Ran(2), "events 1 y", "events 2 y")
		s.Stop()
		s.codes(nil)
	})
}

func TestS_ZMQ_26(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := withOther(t, p, fanOutBound)
		s.says(host.Retry(errHandler), host.MaxAttempts(2), host.DeadLetterTo(s.other.To("q")))
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Handled(2), "events 1 x", "events 2 x")
		servicetest.Expect(t, "elsewhere", shape(t, s.q.got(1)),
			s.deadLetter("q", "x", 2, 2, "")+" x-longshore-error=*errors.errorString x-longshore-reason=it failed")
		s.Stop()
		s.codes(map[string]int{"L-CAP-DL": 1})
	})
}
