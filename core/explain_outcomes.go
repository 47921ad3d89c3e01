// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sayings are the outcomes of the table. Under a Backoff a plain retry is one
// later, by up to its longest delay.
func (x *explainer) sayings() []saying {
	retry := saying{outcome: Outcome{Kind: OutcomeRetry}}
	if x.p.Backoff {
		retry.outcome = Outcome{Kind: OutcomeRetryAfter, After: x.d.LongestBackoff}
		retry.delay = "up to " + shortDuration(x.d.LongestBackoff)
	}
	named := func(name string, o saying, cause Cause) saying {
		o.name, o.outcome.Cause = name, cause
		return o
	}
	all := []saying{
		{name: "ack", outcome: Outcome{Kind: OutcomeAck}},
		{name: "drop", outcome: Outcome{Kind: OutcomeDrop}},
		named("retry", retry, CauseReturned),
	}
	all = append(all, x.delays()...)
	all = append(all,
		saying{name: "dead-letter", outcome: Outcome{Kind: OutcomeDeadLetter}},
		saying{name: "leave", outcome: Outcome{Kind: OutcomeLeave}},
		named("error", retry, CauseError),
	)
	for _, e := range x.d.Errors {
		all = append(all, named("error "+e.Match, x.reaction(e.Reaction, retry, retry), CauseError))
	}
	drop := saying{outcome: Outcome{Kind: OutcomeDrop}}
	return append(all,
		named("panic", x.reaction(x.d.Panic, retry, retry), CausePanic),
		named("undecodable", x.reaction(x.d.Undecodable, drop, retry), CauseUndecodable),
	)
}

// reaction is what a failure counts as: other without a reaction, and retry for
// a plain retry, which a Backoff may delay.
func (x *explainer) reaction(r Reaction, other, retry saying) saying {
	switch r.Outcome.Kind {
	case OutcomeLeave:
		return other
	case OutcomeRetry:
		retry.spent = r.Spent
		return retry
	case OutcomeRetryAfter:
		return saying{outcome: r.Outcome, spent: r.Spent}
	default:
		return saying{outcome: r.Outcome}
	}
}

// delays are the outcome retry-after, once for each range of delays between
// the limits of the source and the destination.
func (x *explainer) delays() []saying {
	var limits []time.Duration
	add := func(d time.Duration) {
		if d > 0 && !slices.Contains(limits, d) {
			limits = append(limits, d)
		}
	}
	add(x.s.MaxDelay)
	if !x.s.Extend {
		add(x.s.MaxHold)
	}
	if x.retry.State == RouteOpen {
		add(x.retry.Caps.MaxDelay)
	}
	slices.Sort(limits)
	const sample = time.Hour + 7 // no delay that a plan has by itself
	at := func(name string, d time.Duration) saying {
		return saying{name: name, outcome: Outcome{Kind: OutcomeRetryAfter, After: d}, delay: "d"}
	}
	out := []saying{{name: "retry-after 0", outcome: Outcome{Kind: OutcomeRetryAfter}}}
	low := time.Duration(0)
	for _, limit := range limits {
		name := "retry-after d < " + shortDuration(limit)
		if low > 0 {
			name = fmt.Sprintf("retry-after %s <= d < %s", shortDuration(low), shortDuration(limit))
		}
		out = append(out, at(name, low+(limit-low+1)/2))
		low = limit
	}
	if low == 0 {
		return append(out, at("retry-after d", sample))
	}
	return append(out, at("retry-after d >= "+shortDuration(low), low+sample))
}

// joinDelays names two neighbouring ranges of delays as one.
func joinDelays(a, b string) string {
	from, _, ok := strings.Cut(strings.TrimPrefix(a, "retry-after "), " <= d")
	_, to, bounded := strings.Cut(b, " < ")
	switch {
	case a == "retry-after 0" && bounded:
		return "retry-after d < " + to
	case a == "retry-after 0" || !bounded && !ok && !strings.Contains(a, ">="):
		return "retry-after d"
	case ok && bounded:
		return "retry-after " + from + " <= d < " + to
	case bounded:
		return "retry-after d < " + to
	default:
		return "retry-after d >= " + from
	}
}

// snoozes are the rows of deliveries that a handler puts off: nothing is said to
// the source, and the host keeps them.
func (x *explainer) snoozes() []Row {
	if x.d.Snooze.Times <= 0 {
		return nil
	}
	const d = time.Second
	name := "snooze d"
	if x.s.MaxHold > 0 && !x.s.Extend {
		name += " < " + shortDuration(x.s.MaxHold)
	}
	names := Names{Delay: func(time.Duration) string { return "d" }}
	c := Case{Source: *x.s, Retry: *x.retry, Dead: *x.dead, Outcome: Outcome{Kind: OutcomeRetryAfter, After: d}, Journal: x.d.Journal}
	path := Path{{Step: Step{Do: ActHold, Delay: d}}}
	beyond := fmt.Sprintf("after %d times or %s in all", x.d.Snooze.Times, shortDuration(x.d.Snooze.Total))
	if x.s.MaxHold > 0 && !x.s.Extend {
		beyond += ", or where the hold would end first"
	}
	order := "later ones pass it"
	if x.s.Order == OrderNone {
		order = "there is none"
	}
	return []Row{{
		Outcome: name,
		Attempt: "any",
		Plan:    path.Text(names) + "; the handler again",
		Order:   order,
		Ends:    Fate(path, len(path), PartyNobody, &c),
		Notes:   []string{"the attempt stays the same; " + beyond + " it is retry-after d"},
		Steps:   steps(path, &c, names),
	}}
}
