// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"
)

// Backoff turns a plain retry into a retry later, by the schedule s: after an
// error, after a panic and after [Retry], but not after [RetryAfter], which says
// its own time. Where neither the source nor a copy can wait as long as the
// longest delay, it is refused at start. The default is to retry at once.
func Backoff(s Schedule) Rule {
	return Rule{"Backoff", caller(), func(set *ruleSet) *complaint {
		c := s.wrong()
		if c == nil {
			set.backoff = s
		}
		return c
	}}
}

// MaxElapsed bounds the time in which a message is tried, beside the number of
// its attempts: a failure at d after its first one, or later, is treated as one
// at the cap of [MaxAttempts], whether or not that is given. It becomes a dead
// letter where one is declared and is rejected otherwise. An attempt that has
// begun, and a wait for the next one, are not cut short. With it, [DeadLetterTo]
// alone no longer takes every retry. The default is no limit.
//
// Copies carry the time of the first failure in the header
// x-longshore-first-failure. Where the source counts deliveries and brings them
// back itself, the host remembers it for the last 4,096 failing messages of the
// subscription, by the identity that the transport gives them; beyond that, and
// after a restart of the host, a message's time begins anew. Without an identity
// d is not kept, and that is logged once (L-CHECK).
func MaxElapsed(d time.Duration) Rule {
	return Rule{"MaxElapsed", caller(), func(s *ruleSet) *complaint {
		s.maxElapsed = d
		if d <= 0 {
			return &complaint{fmt.Sprintf("%v is no time to try in", d), "use a time above 0, or leave the rule out for no limit"}
		}
		return nil
	}}
}

// Where the rule SnoozeLimit is not given.
const (
	defaultSnoozes   = 100       // a wait of minutes for something that takes hours is still a wait
	defaultSnoozedIn = time.Hour // longer than that, a copy that waits costs less than a delivery that is held
)

// SnoozeLimit bounds what [Snooze] may do with one delivery: n times, and total
// from the first one on. A Snooze beyond either is a [RetryAfter]. The defaults
// are 100 and 1 h; n = 0 makes every Snooze one.
func SnoozeLimit(n int, total time.Duration) Rule {
	return Rule{"SnoozeLimit", caller(), func(s *ruleSet) *complaint {
		s.snoozes, s.snoozedIn = n, total
		return allOf(
			unless(n >= 0, fmt.Sprintf("%d is no number of times", n), "use 0 for no Snooze at all, or more"),
			unless(n == 0 || total > 0, fmt.Sprintf("%v is no time", total), "use a time above 0"),
		)
	}}
}
