// SPDX-License-Identifier: Apache-2.0

package host

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
