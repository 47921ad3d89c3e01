// SPDX-License-Identifier: Apache-2.0

package core

import (
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
	if d.Forward.State == RouteOpen {
		t.Forward = routeText(&d.Forward, "")
	}
	if d.Reply.State == RouteOpen {
		t.Reply = routeText(&d.Reply, "the address that the message names")
	}
	for i := range d.Publishes {
		t.Publishes = append(t.Publishes, routeText(&d.Publishes[i], ""))
	}
	if p.DeadLetter {
		t.DeadLetter = routeText(&dead, "no destination")
	}
	for i := range profiles {
		x := explainer{p: &p, s: &profiles[i], retry: &retry, dead: &dead, d: &d}
		t.Profiles = append(t.Profiles, Profile{
			Source:   profiles[i].String(),
			Delivery: profiles[i].delivery(),
			Counts:   x.counts(),
			Rows:     x.rows(),
		})
		if x.copies && retry.State == RouteOpen {
			t.Copies = routeText(&retry, "the name computed for the delivery")
		}
	}
	return t
}

// explainer makes the rows of one profile.
type explainer struct {
	p           *Policy
	s           *Capabilities
	retry, dead *Route
	d           *Declared
	copies      bool // a row, or what follows when a step of it fails, has a copy
}

// saying is an outcome as the table names it.
type saying struct {
	name    string
	outcome Outcome
	spent   bool   // no attempt is left
	delay   string // what Outcome.After is printed as, "" = as it is
}

// class is a class of attempts.
type class struct {
	name    string
	attempt Attempt
	spent   bool // the time for attempts is over
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
	return append(rows, x.snoozes()...)
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
	var out []class
	switch {
	case limit > 0 && unknown:
		out = []class{{name: "unknown"}}
	case limit > 0:
		if limit > 1 {
			out = append(out, at("first", 1))
		}
		if limit > 2 {
			out = append(out, at("below cap", 2))
		}
		out = append(out, at("at cap", limit), at("over cap", limit+1))
	default:
		first, again := at("first", 1), at("again", 2)
		if unknown {
			first, again = class{name: "unknown"}, class{name: "unknown, again"}
		}
		again.floor = x.d.Floor
		out = []class{first, again}
	}
	if x.p.Elapsed {
		late := out[len(out)-1]
		if limit > 0 {
			late = out[0]
		}
		late.name, late.spent = "time up", true
		out = append(out, late)
	}
	return out
}

// row makes the row of one outcome at one class of attempts.
func (x *explainer) row(said saying, at class) Row {
	if said.outcome.Kind != OutcomeRetry || x.p.DeadLetter && !x.p.capped() {
		at.floor = 0 // it is for plain requeues
	}
	c := Case{
		Source: *x.s, Retry: *x.retry, Dead: *x.dead, Attempt: at.attempt,
		Outcome: said.outcome, Floor: at.floor, Spent: said.spent || at.spent, Journal: x.d.Journal,
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
	r.Failures = x.failures(&plan, path, names)
	x.copies = x.copies || copying(path)
	for i := range path {
		if to := path[i].Step.To; to != TargetNone {
			r.Copy = routeName(c.route(to), "fn")
		}
	}
	if said.outcome.Kind == OutcomeAck && said.outcome.Cause == CauseReturned {
		x.before(&r, path, c, names)
	}
	return r
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

// copying reports whether a copy for a retry is made on the path.
func copying(p Path) bool {
	return slices.ContainsFunc(p, func(d Done) bool { return d.Step.To == TargetRetry })
}

// failures are the steps that can fail and what is done then.
func (x *explainer) failures(plan *Plan, path Path, names Names) []RowFailure {
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
		x.copies = x.copies || copying(walk)
		then := walk[i+1:].Text(names)
		if len(walk) == i+1 {
			then = "nothing more"
		}
		out = append(out, RowFailure{If: walk[i : i+1].Text(names), Then: then})
	}
	return out
}
