// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
)

// waitFindings warn of a Backoff that moves messages from a source that keeps them
// into this process's memory. Who gives stops more time than the longest delay
// has seen to it.
func (s *subscribed) waitFindings(profiles []core.Capabilities) []Finding {
	longest := s.rules().backoff.longest
	limit := s.on.run.opts.drainLimit
	if !s.rules().backoff.given() || longest <= 0 || limit > longest || !slices.ContainsFunc(profiles, s.waitsInMemory) {
		return nil
	}
	f := s.at()
	f.Option, f.Warning = "Backoff", true
	stop := ""
	if limit > 0 {
		stop = fmt.Sprintf(", and a stop beyond the drain limit of %v,", limit)
	}
	f.Message = fmt.Sprintf("messages are acked and then wait for up to %v as copies in memory, though the source would keep them: a kill%s loses what waits",
		longest, stop)
	f.Fix = fmt.Sprintf("give WithJournal, or WithDrainLimit above %v, or return Snooze instead", longest)
	return []Finding{f}
}

// waitsInMemory reports whether a retry under the Backoff is a copy that waits in
// memory while its original is gone from a source that would have kept it.
func (s *subscribed) waitsInMemory(source core.Capabilities) bool {
	if source.Ack == core.AckNone || source.Unsettled == core.UnsettledLost {
		return false
	}
	c := core.Case{
		Source: source, Retry: s.retry, Dead: s.dead, Attempt: core.Attempt{Native: 1}, Journal: s.declared.Journal,
		Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, Cause: core.CauseError, After: s.rules().backoff.longest},
	}
	var plan core.Plan
	core.Decide(&s.policy, &c, &plan)
	return plan.Notes&core.NoteWindow != 0
}

// reactionFindings warn of reactions that ask for a dead letter where there is
// none: they drop.
func (s *subscribed) reactionFindings(profiles []core.Capabilities) (found []Finding) {
	rules := s.rules()
	drops := slices.ContainsFunc(profiles, func(c core.Capabilities) bool { return c.Reject != core.RejectDeadLetters })
	if s.policy.DeadLetter || !drops {
		return nil
	}
	add := func(option string, ps ...place) {
		f := s.at()
		f.Option, f.Warning, f.Places = option, true, places(ps...)
		f.Message = "AsDeadLetter drops the message: there is no dead letter, and the source has none of its own"
		f.Fix = "declare DeadLetterTo, or say AsDrop"
		found = append(found, f)
	}
	var ps []place
	for i := range rules.errors {
		if c := &rules.errors[i]; c.reaction == AsDeadLetter && !slices.Contains(ps, c.place) {
			ps = append(ps, c.place)
		}
	}
	if len(ps) > 0 {
		add("OnError", ps...)
	}
	if rules.panics == AsDeadLetter {
		add("OnPanic", s.placeOf("OnPanic"))
	}
	if rules.undecodable == AsDeadLetter {
		add("OnUndecodable", s.placeOf("OnUndecodable"))
	}
	return found
}

// checkCounts warns of a cap that is used up before its subscription has seen a
// message: dead letters carry their count on. A cap of 1 says what happens then.
func (r *run) checkCounts() (found []Finding) {
	dead := deadLetters()
	dead.exactly = true
	come := make(map[*subscribed]uint32) // the most attempts that dead letters come with
	from := make(map[*subscribed][]string)
	for _, s := range r.subs {
		if dead.to(s).IsZero() || s.dead.Caps.Headers == core.HeadersNone {
			continue
		}
		n := s.lastAttempt()
		readers, _ := r.readers(s, dead)
		for _, reader := range readers {
			if n > 0 && reader != s {
				come[reader] = max(come[reader], n)
				from[reader] = append(from[reader], s.sub.name)
			}
		}
	}
	for _, s := range r.subs {
		n, limit := come[s], s.rules().maxAttempts
		native := slices.ContainsFunc(s.profiles, func(c core.Capabilities) bool { return c.Counts == core.CountNative })
		if n == 0 || limit <= 1 || limit > n || native {
			continue
		}
		f := s.at()
		f.Option, f.Warning, f.Places = "MaxAttempts", true, places(s.placeOf("MaxAttempts"))
		f.Message = fmt.Sprintf("the dead letters of %s carry their count on: they come with %d, so that the first attempt here is number %d and, with a cap of %d, the only one",
			strings.Join(from[s], ", "), n, uint64(n)+1, limit)
		f.Fix = fmt.Sprintf("give the sum, MaxAttempts(%d), or MaxElapsed", uint64(n)+uint64(limit))
		found = append(found, f)
	}
	return found
}

// lastAttempt is the attempt after which the policy makes dead letters; 0 = that
// is not known. Of a source that counts itself the dead letters' count begins anew.
func (s *subscribed) lastAttempt() uint32 {
	native := slices.ContainsFunc(s.profiles, func(c core.Capabilities) bool { return c.Counts == core.CountNative })
	switch {
	case native || s.policy.MaxAttempts == 0 && !s.policy.Elapsed:
		return 1
	default:
		return s.policy.MaxAttempts
	}
}
