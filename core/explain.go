// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Explain returns what each outcome leads to under p on a source with the given
// profiles. The rows are made by Decide and Fate: what is printed is what is
// carried out. Copies of a destination that is computed for each delivery are
// shown with the route that the caller gives.
func Explain(p Policy, profiles []Capabilities, retry, dead Route, d Declared) Table {
	t := Table{
		Policy:   policyText(&p, &retry, &dead, &d),
		Findings: Check(p, profiles, retry, dead, d),
	}
	if retry.State == RouteOpen {
		t.Copies = routeText(&retry, "the name computed for the delivery")
	}
	if d.Forward.State == RouteOpen {
		t.Forward = routeText(&d.Forward, "")
	}
	if p.DeadLetter {
		t.DeadLetter = routeText(&dead, "no destination")
	}
	for i := range profiles {
		x := explainer{p: &p, s: &profiles[i], retry: &retry, dead: &dead, d: &d}
		t.Profiles = append(t.Profiles, Profile{
			Source: profiles[i].String(),
			Counts: x.counts(),
			Rows:   x.rows(),
		})
	}
	return t
}

// explainer makes the rows of one profile.
type explainer struct {
	p           *Policy
	s           *Capabilities
	retry, dead *Route
	d           *Declared
}

// saying is an outcome as the table names it.
type saying struct {
	name    string
	outcome Outcome
	delay   string // what Outcome.After is printed as, "" = as it is
}

// class is a class of attempts.
type class struct {
	name    string
	attempt Attempt
	floor   time.Duration
}

// rows are the table's rows: outcome by outcome, attempts with the same steps in
// one row.
func (x *explainer) rows() []Row {
	var rows []Row
	for _, said := range x.sayings() {
		var own []Row
		classes := x.classes()
		for _, c := range classes {
			if x.s.Counts == CountNative && x.p.MaxAttempts > 0 && c.attempt.Native > x.p.MaxAttempts {
				continue // the handler does not run
			}
			own = merge(own, x.row(said, c), func(r *Row) *string { return &r.Attempt })
		}
		if len(own) == 1 {
			own[0].Attempt = "any"
		}
		if n := len(rows); n > 0 && len(own) == 1 && isLater(&rows[n-1]) && isLater(&own[0]) && rows[n-1].sameAs(&own[0]) {
			// Delays on both sides of a limit that changes nothing.
			rows[n-1].Outcome = joinDelays(rows[n-1].Outcome, own[0].Outcome)
			continue
		}
		rows = append(rows, own...)
	}
	if x.s.Counts == CountNative && x.p.MaxAttempts > 0 {
		over := class{name: "over cap", attempt: Attempt{Native: x.p.MaxAttempts + 1}}
		rows = append(rows, x.row(saying{name: "delivered"}, over))
	}
	return rows
}

func isLater(r *Row) bool { return strings.HasPrefix(r.Outcome, "retry-after") }

// merge appends r to rows, or joins its name to the row that it is equal to.
func merge(rows []Row, r Row, name func(*Row) *string) []Row {
	for i := range rows {
		if rows[i].sameAs(&r) {
			*name(&rows[i]) += ", " + *name(&r)
			return rows
		}
	}
	return append(rows, r)
}

// sameAs reports whether two rows say the same.
func (r *Row) sameAs(o *Row) bool {
	return r.Plan == o.Plan && r.Copy == o.Copy && r.Order == o.Order && r.Ends == o.Ends &&
		slices.Equal(r.Notes, o.Notes) && slices.Equal(r.Steps, o.Steps) && slices.Equal(r.Failures, o.Failures)
}

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
	return append(all,
		saying{name: "dead-letter", outcome: Outcome{Kind: OutcomeDeadLetter}},
		saying{name: "leave", outcome: Outcome{Kind: OutcomeLeave}},
		named("error", retry, CauseError),
		named("panic", retry, CausePanic),
		saying{name: "undecodable", outcome: Outcome{Kind: OutcomeDrop, Cause: CauseUndecodable}},
	)
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

// classes are the classes of attempts that can differ.
func (x *explainer) classes() []class {
	copies := x.retry.State != RouteNone
	at := func(name string, n uint64) class {
		c := class{name: name, attempt: Attempt{Copies: n - 1}}
		if x.s.Counts == CountNative {
			c.attempt = Attempt{Native: uint32(n)}
		}
		return c
	}
	unknown := x.s.Counts == CountNone && !copies
	limit := uint64(x.p.MaxAttempts)
	switch {
	case limit > 0 && unknown:
		return []class{{name: "unknown"}}
	case limit > 0:
		var out []class
		if limit > 1 {
			out = append(out, at("first", 1))
		}
		if limit > 2 {
			out = append(out, at("below cap", 2))
		}
		return append(out, at("at cap", limit), at("over cap", limit+1))
	}
	first, again := at("first", 1), at("again", 2)
	if unknown {
		first, again = class{name: "unknown"}, class{name: "unknown, again"}
	}
	again.floor = x.d.Floor
	return []class{first, again}
}

// row makes the row of one outcome at one class of attempts.
func (x *explainer) row(said saying, at class) Row {
	c := Case{
		Source: *x.s, Retry: *x.retry, Dead: *x.dead, Attempt: at.attempt,
		Outcome: said.outcome, Floor: at.floor, Journal: x.d.Journal,
	}
	var plan Plan
	Decide(x.p, &c, &plan)
	names := Names{
		Retry: routeName(x.retry, "fn"),
		Dead:  routeName(x.dead, "dead"),
		Count: func(uint64) string { return "n" },
		Delay: func(d time.Duration) string {
			switch {
			case said.delay != "" && d == said.outcome.After:
				return said.delay
			case at.floor > 0 && d == at.floor:
				return "up to " + shortDuration(d)
			default:
				return shortDuration(d)
			}
		},
	}
	path := plan.Path(func(Step) Result { return ResultDone }, nil)
	r := Row{
		Outcome: said.name,
		Attempt: at.name,
		Plan:    path.Text(names),
		Order:   x.order(path),
		Notes:   plan.Notes.words(),
		Ends:    Fate(path, len(path), PartyNobody, &c),
		Steps:   steps(path, &c, names),
	}
	r.Failures = failures(&plan, path, names)
	for i := range path {
		if to := path[i].Step.To; to != TargetNone {
			r.Copy = routeName(c.route(to), "fn")
		}
	}
	if said.outcome.Kind == OutcomeAck && x.d.Forward.State == RouteOpen {
		x.forward(&r, path, c, names)
	}
	return r
}

// forward makes the row of an ack one of a message that is forwarded first:
// until its receipt the message itself is what must go on, as a copy's is.
func (x *explainer) forward(r *Row, path Path, c Case, names Names) {
	to := &x.d.Forward
	name := "FORWARD(" + routeName(to, "") + ")"
	c.Retry = *to
	whole := append(Path{{Step: Step{Do: ActPublish, To: TargetRetry}}}, path...)
	r.Plan = name + "; " + r.Plan
	r.Ends = Fate(whole, len(whole), PartyNobody, &c)
	r.Steps = steps(whole, &c, names)
	r.Steps[1].Step = name
	r.Failures = append([]RowFailure{{If: name + "=FAILED", Then: "as an error"}}, r.Failures...)
}

// steps are the deaths after each step that is more than a line.
func steps(path Path, c *Case, names Names) []RowStep {
	at := func(text string, done int) RowStep {
		s := RowStep{
			Step:         text,
			Host:         Fate(path, done, PartyHost, c),
			SourcePlugin: Fate(path, done, PartySourcePlugin, c),
			SourceBroker: Fate(path, done, PartySourceBroker, c),
		}
		if slices.ContainsFunc(path, func(d Done) bool { return d.Step.To != TargetNone }) {
			s.TargetPlugin = Fate(path, done, PartyTargetPlugin, c)
			s.TargetBroker = Fate(path, done, PartyTargetBroker, c)
		}
		return s
	}
	out := []RowStep{at("start", 0)}
	for i := range path {
		s := &path[i].Step
		if s.Do != ActLog && s.Do != ActNoRun && s.Do != ActStop {
			out = append(out, at(s.Text(names), i+1))
		}
	}
	return out
}

// failures are the steps that can fail and what is done then.
func failures(plan *Plan, path Path, names Names) []RowFailure {
	var out []RowFailure
	for i := range path {
		r := ResultFailed
		switch path[i].Step.Do {
		case ActPublish, ActPublishLater:
			r = ResultTransient
		case ActAck, ActReject, ActRequeue, ActStore:
		default:
			continue
		}
		n := -1
		walk := plan.Path(func(Step) Result {
			if n++; n == i {
				return r
			}
			return ResultDone
		}, nil)
		then := walk[i+1:].Text(names)
		if len(walk) == i+1 {
			then = "nothing more"
		}
		out = append(out, RowFailure{If: walk[i : i+1].Text(names), Then: then})
	}
	return out
}
