// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// mostWorkers bounds Workers: more handlers at a time of one subscription than
// this are a mistake in every service that was seen.
const mostWorkers = 10_000

// headerKey is the header that ByKey reads.
const headerKey = "partition-key"

// dispatch is what the rules about dispatch declare.
type dispatch struct {
	workers int // 0 = 1
	key     func(m *core.Message) (string, error)
	header  string     // whose last value is the key
	limit   rate.Limit // 0 = none
	burst   int
	circuit *settlement.Circuit
}

// keyed reports whether there are keys.
func (d *dispatch) keyed() bool { return d.key != nil || d.header != "" }

// Workers handles up to n deliveries, or n batches, at a time. Without [ByKey]
// they are begun in order and end in any. Workers are started on demand. The
// default is 1.
func Workers(n int) Rule {
	return Rule{"Workers", caller(), func(s *ruleSet) *complaint {
		s.workers = n
		if n < 1 || n > mostWorkers {
			return &complaint{
				fmt.Sprintf("%d is no number of workers", n), fmt.Sprintf("use 1 to %d, or leave the rule out for one", mostWorkers),
			}
		}
		return nil
	}}
}

// ByKey handles deliveries that have the same key, the last value of their header
// partition-key, one after the other in the order they came, while [Workers]
// handle others; those without a key are handled as they come. A message that is
// retried by a copy comes back behind the newer ones of its key.
func ByKey() Rule {
	return Rule{"ByKey", caller(), func(s *ruleSet) *complaint {
		s.key, s.header = nil, headerKey
		return nil
	}}
}

// ByKeyFunc is [ByKey] with the key that f gives; "" is none. f sees the message
// as it was received and may not keep it. It runs once for each delivery, one
// after the other as they are read, so it must not block: what it waits for holds
// up the whole subscription. A panic in it, or runtime.Goexit, is one of the
// handler, which does not run then.
func ByKeyFunc(f func(m core.Message) string) Rule {
	return Rule{"ByKeyFunc", caller(), func(s *ruleSet) *complaint {
		if f == nil {
			return &complaint{"has no function", "give one, or use ByKey"}
		}
		s.header = ""
		s.key = func(m *core.Message) (key string, err error) {
			defer func() {
				if v := recover(); v != nil {
					key, err = "", thrown(v)
				}
			}()
			return f(*m), nil
		}
		return nil
	}}
}

// RateLimit begins at most perSecond deliveries a second on average, and burst of
// them at once. Redeliveries count. What waits for its turn is unsettled with
// the host, within the subscription's window. It is for the subscription alone;
// package middleware has one that several can share.
func RateLimit(perSecond float64, burst int) Rule {
	return Rule{"RateLimit", caller(), func(s *ruleSet) *complaint {
		s.limit, s.burst = rate.Limit(perSecond), burst
		return allOf(
			unless(perSecond > 0 && !math.IsInf(perSecond, 0), fmt.Sprintf("%v a second is no rate", perSecond),
				"use a number above 0, or leave the rule out for no limit"),
			unless(burst > 0, fmt.Sprintf("a burst of %d lets nothing through", burst), "use a burst of 1 or more"),
		)
	}}
}

// Circuit says when a subscription stops taking in deliveries because too many of
// them fail, see [CircuitBreaker]. Zero fields are the defaults.
type Circuit struct {
	Share   float64       // of the last Of outcomes that must have failed to open it, above 0 and at most 1; default 0.5
	Of      int           // how many outcomes are looked at; default 20
	Pause   time.Duration // how long nothing is begun then; default 5 s
	Longest time.Duration // what Pause grows to, doubled each time that a probe fails; default 1 min, or Pause where that is longer
	Probes  int           // deliveries that must go well, one by one, before all are begun again; default 1
}

// The defaults of Circuit.
const (
	circuitShare   = 0.5
	circuitOf      = 20
	circuitPause   = 5 * time.Second
	circuitLongest = time.Minute
	circuitProbes  = 1
)

// CircuitBreaker stops the intake of a subscription while too many of its
// deliveries fail, so that messages stay where they are instead of using up their
// attempts against something that is down. A failure is what ends in a retry: an
// error, a panic, a publish that was not confirmed, and what the handler puts off;
// not a drop, a dead letter, [NeverRetry] or a message that cannot be decoded. What
// is delivered already waits unsettled.
func CircuitBreaker(c Circuit) Rule {
	return Rule{"CircuitBreaker", caller(), func(s *ruleSet) *complaint {
		if c.Share == 0 {
			c.Share = circuitShare
		}
		if c.Of == 0 {
			c.Of = circuitOf
		}
		if c.Pause == 0 {
			c.Pause = circuitPause
		}
		if c.Longest == 0 {
			c.Longest = max(circuitLongest, c.Pause)
		}
		if c.Probes == 0 {
			c.Probes = circuitProbes
		}
		s.circuit = &settlement.Circuit{Share: c.Share, Of: c.Of, Pause: c.Pause, Longest: c.Longest, Probes: c.Probes}
		return allOf(
			unless(c.Share > 0 && c.Share <= 1, fmt.Sprintf("Share %v is no share", c.Share), "use a Share above 0 and at most 1"),
			unless(c.Of > 0 && c.Of <= mostOutcomes, fmt.Sprintf("Of %d is no number of outcomes", c.Of), fmt.Sprintf("use 1 to %d for Of", mostOutcomes)),
			unless(c.Pause > 0, fmt.Sprintf("Pause %v is no time", c.Pause), "use a Pause above 0"),
			unless(c.Pause < 0 || c.Longest >= c.Pause, fmt.Sprintf("Longest %v is below Pause %v", c.Longest, c.Pause), "let Longest be as long at least"),
			unless(c.Pause >= 0 || c.Longest >= 0, fmt.Sprintf("Longest %v is no time", c.Longest), "use a Longest above 0"),
			unless(c.Probes > 0, fmt.Sprintf("Probes %d is no number of deliveries", c.Probes), "use 1 or more for Probes"),
		)
	}}
}

// mostOutcomes bounds what a circuit breaker remembers of each subscription.
const mostOutcomes = 10_000

// idleKeys warns of keys that have no effect.
func (s *subscribed) idleKeys() []Finding {
	rules := s.rules()
	if !rules.keyed() || rules.workers > 1 {
		return nil
	}
	f := s.at()
	f.Option, f.Warning = "ByKey", true
	if _, ok := rules.given["ByKeyFunc"]; ok {
		f.Option = "ByKeyFunc"
	}
	f.Message = "has no effect: one worker handles all deliveries in order"
	f.Fix = "add the rule Workers, or leave this one out"
	f.Places = places(s.placeOf(f.Option))
	return []Finding{f}
}

// pace returns what the engine asks before it begins a delivery, nil where
// nothing holds it up. Each run has a limiter of its own.
func (s *subscribed) pace() func(now time.Time) time.Duration {
	limited := s.rules().limiter()
	switch {
	case s.hooks == nil:
		return limited
	case limited == nil:
		return func(time.Time) time.Duration { return s.hooks.full() }
	}
	return func(now time.Time) time.Duration {
		if wait := s.hooks.full(); wait > 0 {
			return wait
		}
		return limited(now)
	}
}

// limiter returns RateLimit as the engine asks for it, nil without that.
func (d *dispatch) limiter() func(now time.Time) time.Duration {
	if d.limit == 0 {
		return nil
	}
	l := rate.NewLimiter(d.limit, d.burst)
	return func(now time.Time) time.Duration {
		r := l.ReserveN(now, 1)
		wait := r.DelayFrom(now)
		if wait > 0 {
			r.CancelAt(now) // it is asked again then
		}
		return wait
	}
}
