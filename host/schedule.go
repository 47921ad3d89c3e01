// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Schedule says how long a message waits before each further attempt, see
// [Backoff]. Make one with [Constant], [Linear], [Exponential] or [Delays]; the
// zero value has no delays and is refused. It is a value and safe for concurrent
// use.
type Schedule struct {
	kind    scheduleKind
	first   time.Duration
	longest time.Duration
	listed  []time.Duration
	steady  float64 // the share of a delay that jitter leaves alone
}

// scheduleKind is how delays grow.
type scheduleKind uint8

const (
	scheduleNone scheduleKind = iota
	scheduleConstant
	scheduleLinear
	scheduleExponential
	scheduleListed
)

// Constant waits d before every further attempt. d is above 0.
func Constant(d time.Duration) Schedule {
	return Schedule{kind: scheduleConstant, first: d, longest: d}
}

// Linear waits first after the first attempt and first longer after each further
// one, at most longest: 1 s, 2 s, 3 s. first is above 0 and not above longest.
func Linear(first, longest time.Duration) Schedule {
	return Schedule{kind: scheduleLinear, first: first, longest: longest}
}

// Exponential waits first after the first attempt and twice as long after each
// further one, at most longest: 1 s, 2 s, 4 s. first is above 0 and not above
// longest.
func Exponential(first, longest time.Duration) Schedule {
	return Schedule{kind: scheduleExponential, first: first, longest: longest}
}

// Delays waits as listed: the first after the first attempt, the second after
// the second; the last one is repeated. None is below 0, where 0 is at once, and
// one at least is above it.
func Delays(d ...time.Duration) Schedule {
	s := Schedule{kind: scheduleListed, listed: slices.Clone(d)}
	if len(d) > 0 {
		s.first, s.longest = d[0], slices.Max(d)
	}
	return s
}

// Jitter returns the schedule with another jitter, which pulls apart messages
// that failed together: a wait is drawn evenly from the upper share of its
// delay, so that none is longer than the schedule says. 1, the default, draws
// from the whole of it, 0.2 from its last fifth, and 0 waits exactly as long.
// share is from 0 to 1.
func (s Schedule) Jitter(share float64) Schedule {
	s.steady = 1 - share
	return s
}

// given reports whether s is one at all.
func (s *Schedule) given() bool { return s.kind != scheduleNone }

// delay returns the wait after an attempt, the first being 1, before jitter. An
// unknown attempt (0) counts as the first.
func (s *Schedule) delay(attempt uint64) time.Duration {
	n := max(attempt, 1)
	switch s.kind {
	case scheduleLinear:
		if n > uint64(s.longest/s.first) {
			return s.longest
		}
		return time.Duration(n) * s.first
	case scheduleExponential:
		d := s.first
		for ; n > 1; n-- {
			if d > s.longest/2 {
				return s.longest
			}
			d *= 2
		}
		return d
	case scheduleListed:
		return s.listed[min(n, uint64(len(s.listed)))-1]
	default:
		return s.longest
	}
}

// draw returns the wait after an attempt. It is above 0 where the delay is.
func (s *Schedule) draw(attempt uint64) time.Duration {
	d := s.delay(attempt)
	return d - min(time.Duration((1-s.steady)*rand.Float64()*float64(d)), max(d-1, 0))
}

// wrong complains of a schedule that makes no sense.
func (s *Schedule) wrong() *complaint {
	return allOf(s.wrongDelays(), unless(s.kind == scheduleNone || s.steady >= 0 && s.steady <= 1,
		fmt.Sprintf("its jitter %v is no share", 1-s.steady), "use 0 for no jitter, up to 1 for the whole delay"))
}

func (s *Schedule) wrongDelays() *complaint {
	switch {
	case s.kind == scheduleNone:
		return &complaint{"has no delays", "give Constant, Linear, Exponential or Delays"}
	case s.kind == scheduleListed && len(s.listed) == 0:
		return &complaint{"lists no delays", "give Delays one delay or more"}
	case s.kind == scheduleListed && slices.Min(s.listed) < 0:
		return &complaint{
			fmt.Sprintf("%v is no delay", slices.Min(s.listed)), "use 0 for at once, or a delay above it",
		}
	case s.kind == scheduleListed && s.longest == 0:
		return &complaint{"lists no delay above 0", "give one above 0, or leave the rule out for retries at once"}
	case s.kind == scheduleConstant && s.longest <= 0:
		return &complaint{fmt.Sprintf("%v is no delay", s.longest), "use a delay above 0"}
	case s.kind != scheduleListed && (s.first <= 0 || s.longest < s.first):
		return &complaint{
			fmt.Sprintf("from %v to %v is no range of delays", s.first, s.longest),
			"the first delay must be above 0 and the longest not below it",
		}
	}
	return nil
}
