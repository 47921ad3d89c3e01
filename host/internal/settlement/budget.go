// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// budget reads when the message failed first, under a MaxElapsed, and whether the
// time for its attempts is over. What is read stays with the settlement: its copy
// or dead letter says it.
//
// A copy's header says it. Where the source itself brings the delivery back, the
// lane remembers it by identity, until the message is settled otherwise, it is
// one of the oldest of too many, or the process ends: then it begins anew.
func (s *settlement) budget() {
	l, c := s.l, &s.c
	c.Spent = s.said.Spent
	most := l.o.MaxElapsed
	if most <= 0 {
		return
	}
	id := s.d.Identity
	known := s.d.Message.Headers.FirstFailure
	now := time.Now()
	switch c.Outcome.Kind {
	case core.OutcomeRetry, core.OutcomeRetryAfter:
		at, ok := known()
		switch {
		case ok:
		case len(id) > 0:
			l.mu.Lock()
			first := l.failures.enter(id)
			if first.IsZero() {
				*first = now
			}
			at = *first
			l.mu.Unlock()
		default:
			at = now
			if c.Source.Counts == core.CountNative {
				l.unidentified.Do(l.unbudgeted)
			}
		}
		s.failed = earlier(at, now)
		c.Spent = c.Spent || now.Sub(s.failed) >= most
	default:
		if at, ok := known(); ok {
			s.failed = earlier(at, now)
		}
		if len(id) == 0 || !l.failures.any.Load() {
			return
		}
		l.mu.Lock()
		if first := l.failures.get(id); first != nil {
			if s.failed.IsZero() {
				s.failed = *first
			}
			if c.Outcome.Kind != core.OutcomeLeave && c.Outcome.Kind != core.OutcomeFailFast {
				l.failures.forget(id)
			}
		}
		l.mu.Unlock()
	}
}

// earlier is at, or now where another clock is ahead.
func earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now
	}
	return at
}

// unbudgeted says that a MaxElapsed does not hold.
func (l *Lane) unbudgeted() {
	l.warn(core.LogCheck, "the source counts deliveries and does not say which one comes back, so the time for attempts is never over",
		"option", "MaxElapsed", "fix", "declare MaxAttempts as well", "place", l.o.MaxElapsedAt)
}
