// SPDX-License-Identifier: Apache-2.0

package process

import (
	"math/rand/v2"
	"time"
)

// RestartPolicy says how a crashed plugin is started again.
type RestartPolicy struct {
	Never    bool
	First    time.Duration // default 250 ms, doubled with each crash, with jitter
	Max      time.Duration // default 30 s
	Crashes  int           // that open the breaker; default 5
	Within   time.Duration // default 2 m
	Optional bool          // an open breaker tries once a minute instead of ending, unless Never is set and it was up
	Retry    time.Duration // of an Optional one with an open breaker; default 1 m
}

// The defaults of RestartPolicy.
const (
	defaultFirst   = 250 * time.Millisecond
	defaultMax     = 30 * time.Second
	defaultCrashes = 5
	defaultWithin  = 2 * time.Minute
	defaultRetry   = time.Minute
)

func (p RestartPolicy) withDefaults() RestartPolicy {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&p.First, defaultFirst)
	set(&p.Max, defaultMax)
	set(&p.Within, defaultWithin)
	set(&p.Retry, defaultRetry)
	if p.Crashes <= 0 {
		p.Crashes = defaultCrashes
	}
	return p
}

// breaker counts crashes and decides what follows one.
type breaker struct {
	policy  RestartPolicy
	crashes []time.Time // within the policy's time, oldest first
	since   time.Time   // the first crash of an open breaker
	total   int         // crashes since then
	open    bool
	trial   bool // the generation is one that an open breaker tried
}

func newBreaker(p RestartPolicy) breaker { return breaker{policy: p.withDefaults()} }

// crash notes a crash of a generation that began at began. It returns the pause
// before the next start, and an error when the breaker is open, or nothing may
// be started again.
func (b *breaker) crash(began, now time.Time, l *loss) (time.Duration, *CrashError) {
	keep := 0
	for keep < len(b.crashes) && now.Sub(b.crashes[keep]) > b.policy.Within {
		keep++
	}
	b.crashes = append(b.crashes[keep:], now)
	b.total++

	// A trial that fell at once tells that nothing has changed.
	failed := b.trial && now.Sub(began) < b.policy.Within
	if !failed && !b.policy.Never && len(b.crashes) < b.policy.Crashes {
		b.trial = false
		return b.pause(), nil
	}
	if !failed && !b.open {
		b.since, b.total = b.crashes[0], len(b.crashes)
	}
	b.open, b.trial = true, true
	b.crashes = b.crashes[:0]
	return b.policy.Retry, &CrashError{
		Crashes: b.total, Since: b.since, Never: b.policy.Never, Cause: l.cause, Stderr: l.stderr,
	}
}

// up notes that a generation is up, and reports whether that closes the
// breaker.
func (b *breaker) up() bool {
	was := b.open
	b.open = false
	return was
}

// pause doubles with each crash within the policy's time.
func (b *breaker) pause() time.Duration {
	d := b.policy.First
	for range len(b.crashes) - 1 {
		if d *= 2; d >= b.policy.Max {
			break
		}
	}
	// A quarter of jitter keeps plugins that died together apart.
	d += time.Duration(rand.Int64N(int64(d)/4 + 1))
	return min(d, b.policy.Max)
}
