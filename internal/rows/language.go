// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Delay stands for the d of a row.
const Delay = 7 * time.Second

// Trial is one plan that a row asks for.
type Trial struct {
	Name    string // label, source, declaration, outcome and attempt, joined
	Policy  core.Policy
	Case    core.Case
	Names   core.Names   // what the row calls the destinations
	Headers core.Headers // the count header where the row says how it was received
	Want    string       // what the row expects, the host's part taken off
}

// part is one part of an expected cell.
type part struct {
	label string
	steps []string
}

var (
	wireRE  = regexp.MustCompile(` \[[^\]]*\]`)
	labelRE = regexp.MustCompile(`^([^:(]*): `)
	// hostSteps are carried out by the host beside the plan.
	hostSteps = map[string]bool{
		"INFO(L-DECL)": true, "ERROR(L-LEN)": true, "ERROR(L-STREAM)": true,
		"STOP(EndpointError)": true, "STOP(AbandonedError)": true,
	}
)

// parts splits an expected cell. What stands after =CUT and the host's own
// steps are left out.
func (r Row) parts() []part {
	var out []part
	for _, text := range strings.Split(r.Expected, " / ") {
		var p part
		text = wireRE.ReplaceAllString(text, "")
		if m := labelRE.FindStringSubmatch(text); m != nil {
			p.label = m[1]
			text = text[len(m[0]):]
		}
		for _, s := range splitSteps(text) {
			if hostSteps[s] {
				continue
			}
			p.steps = append(p.steps, s)
			if strings.HasSuffix(s, "=CUT") {
				break
			}
		}
		out = append(out, p)
	}
	return out
}

// splitSteps splits at the semicolons outside of brackets.
func splitSteps(text string) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ';':
			if depth == 0 {
				out = append(out, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

// Results are what the row says became of each step.
func (x *Trial) Results() []core.Result {
	words := map[string]core.Result{
		"": core.ResultDone, "FAILED": core.ResultFailed, "TRANSIENT": core.ResultTransient,
		"REFUSED": core.ResultRefused, "UNKNOWN": core.ResultUnknown, "CUT": core.ResultCut,
		"STALE": core.ResultStaleGone,
	}
	if strings.HasPrefix(x.Name, "returns") {
		words["STALE"] = core.ResultStaleReturns
	}
	var out []core.Result
	for _, s := range strings.Split(x.Want, "; ") {
		_, word, _ := strings.Cut(s, "=")
		out = append(out, words[word])
	}
	return out
}

// Trials reads the row's cells and returns the plans that it asks for.
func (r Row) Trials() ([]Trial, error) {
	var out []Trial
	batch := ""
	for _, p := range r.parts() {
		if p.label == "all" {
			// Said once for the batch, left out of its elements' plans.
			batch = strings.Join(p.steps, "; ")
			continue
		}
		if p.label == "crash" {
			continue // the host ended while the handler ran: there is no plan
		}
		if len(p.steps) == 1 && strings.HasPrefix(p.steps[0], "REFUSE(") {
			continue // the other half of a row, which is about the start
		}
		sources, err := r.sources(p.label)
		if err != nil {
			return nil, err
		}
		decls, err := r.declarations(p.label)
		if err != nil {
			return nil, err
		}
		said, err := r.outcomes(p.label)
		if err != nil {
			return nil, err
		}
		attempts, err := r.attempts(p.label)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			for _, d := range decls {
				for _, o := range said {
					for _, a := range attempts {
						if batch != "" {
							o.outcome.Cause = core.CauseReturned
						}
						out = append(out, compose(p, s, d, o, a))
					}
				}
			}
		}
	}
	return out, nil
}

// compose makes one trial of what the cells said.
func compose(p part, s source, d declaration, o said, a attempt) Trial {
	c := s.c
	x := Trial{Policy: d.policy, Headers: d.headers, Names: core.Names{Retry: s.address, Dead: d.dead}}
	if d.to != "" {
		c.Retry.State = core.RouteOpen
		x.Names.Retry = d.to
	} else if c.Source.Address != "" {
		c.Retry.State = core.RouteOpen
	} else {
		c.Retry = core.Route{}
	}
	if d.refused {
		c.Retry.State = core.RouteRefused
	}
	c.Dead = core.Route{}
	if d.policy.DeadLetter {
		c.Dead = core.Route{State: core.RouteOpen, Caps: Stored()}
	}
	c.Outcome = o.outcome
	if d.backoff > 0 && c.Outcome.Kind == core.OutcomeRetry {
		c.Outcome.Kind, c.Outcome.After = core.OutcomeRetryAfter, d.backoff
	}
	if o.under > 0 {
		// "d or more" and its like are tried with d itself.
		c.Outcome.After = o.under
	}
	copies, _ := d.headers.Count()
	switch {
	case c.Source.Counts == core.CountNative:
		c.Attempt = core.Attempt{Native: uint32(a.number), Copies: copies}
	case len(d.headers) > 0:
		c.Attempt.Copies = copies
	case a.number > 0:
		c.Attempt.Copies = a.number - 1
	}
	c.Floor = a.floor
	x.Case = c
	x.Want = strings.Join(p.steps, "; ")
	if x.Want == "" {
		x.Want = "NONE"
	}
	for old, with := range map[string]time.Duration{"+d(": Delay, "(d)": Delay, "(f)": a.floor} {
		x.Want = strings.ReplaceAll(x.Want, old, strings.NewReplacer("d", short(with), "f", short(with)).Replace(old))
	}
	x.Name = strings.Join([]string{p.label, s.name, d.name, o.name, a.name}, ",")
	return x
}

func short(d time.Duration) string {
	s := core.Step{Do: core.ActHold, Delay: d}.Text(core.Names{})
	return strings.TrimSuffix(strings.TrimPrefix(s, "HOLD("), ")")
}

// declaration is one declaration cell.
type declaration struct {
	name    string
	policy  core.Policy
	to      string // RetryTo, or "fn"
	dead    string
	backoff time.Duration
	refused bool // the computed destination is refused
	headers core.Headers
}

// scopeRE finds the declaration of the registration that the row is about,
// where there are two.
var scopeRE = regexp.MustCompile(`^(a|a/b): (.*?); q: -$`)

func (r Row) declarations(label string) ([]declaration, error) {
	cell := r.Declaration
	if m := scopeRE.FindStringSubmatch(cell); m != nil {
		cell = m[2]
	}
	main, conditions, _ := strings.Cut(cell, "; ")
	if main == "any" {
		n := 3
		if label == "retry" && conditions == "for retry -" {
			n = 1
		}
		return []declaration{
			{name: "-"},
			{name: "cap 5", policy: core.Policy{MaxAttempts: 5}},
			{name: "cap 5, dl q", policy: core.Policy{MaxAttempts: 5, DeadLetter: true}, dead: "q"},
		}[:n], nil
	}
	d := declaration{name: main}
	for _, w := range strings.Split(main, ", ") {
		key, value, _ := strings.Cut(w, " ")
		value, _, _ = strings.Cut(value, " (")
		value, _, _ = strings.Cut(value, " on `")
		switch {
		case w == "-":
		case key == "cap":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("declaration %q: %w", cell, err)
			}
			d.policy.MaxAttempts = uint32(n)
		case w == "dl q on a ZeroMQ queue":
			d.policy.DeadLetter, d.dead = true, "q@other"
		case key == "dl":
			d.policy.DeadLetter, d.dead = true, value
		case key == "to":
			d.policy.RetryTo, d.to = true, value
		case key == "fn":
			d.policy.RetryTo, d.to = true, "fn"
			d.refused = strings.HasPrefix(value, "gives ")
		case w == "wildcard or control-character topic": // of "fn gives an empty, ..."
		case key == "backoff":
			b, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			d.policy.Backoff, d.backoff = true, b
		case key == "or" && strings.HasPrefix(label, "to "): // "no `to`, no `fn`, or to b"
		default:
			return nil, fmt.Errorf("declaration %q: unknown word %q", cell, w)
		}
	}
	for _, c := range strings.Split(conditions, ", ") {
		switch {
		case strings.HasPrefix(c, "header with a blank before "):
			d.count(" " + strings.TrimPrefix(c, "header with a blank before "))
		case c == "header 2 from the peer":
			d.count("2")
		case strings.HasPrefix(c, "header "):
			d.count(strings.TrimPrefix(c, "header "))
		case strings.HasPrefix(c, "or to "):
			d.policy.RetryTo, d.to = true, strings.TrimPrefix(c, "or to ")
		}
	}
	out := []declaration{d}
	switch {
	case strings.HasSuffix(conditions, "or byte FF"):
		out = append(out, d.with("\xff"))
	case strings.HasSuffix(conditions, "or 01"):
		out = append(out, d.with("01"))
	}
	return out, nil
}

func (d *declaration) count(v string) {
	d.headers = core.Headers{{Name: "X-Ruststream-Retry-Count", Value: []byte(v)}}
}

func (d declaration) with(v string) declaration {
	d.name += " " + strconv.Quote(v)
	d.count(v)
	return d
}

// attempt is one attempt that a row speaks of.
type attempt struct {
	name   string
	number uint64
	floor  time.Duration
}

func (r Row) attempts(label string) ([]attempt, error) {
	if k, ok := strings.CutPrefix(label, "k from "); ok {
		from, err := strconv.Atoi(k)
		if err != nil {
			return nil, err
		}
		return returns(r, from), nil
	}
	switch label {
	case "no identity":
		return []attempt{{name: label, number: 1, floor: core.Floor(2)}}, nil
	case "again":
		return returns(r, 2), nil
	}
	if n, err := strconv.ParseUint(label, 10, 64); err == nil {
		return []attempt{{name: label, number: n}}, nil
	}
	cell := strings.TrimPrefix(r.Attempt, "count ")
	switch cell {
	case "any":
		return []attempt{{name: "1", number: 1}, {name: "2", number: 2}, {name: "5", number: 5}}, nil
	case "max":
		return []attempt{{name: cell}}, nil // the header says it
	}
	n, err := strconv.ParseUint(cell, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("attempt %q, label %q: %w", r.Attempt, label, err)
	}
	return []attempt{{name: cell, number: n}}, nil
}

// returns are the returns from k on until the floor grows no more.
func returns(r Row, k int) []attempt {
	var out []attempt
	for ; k <= 9; k++ {
		a := attempt{name: fmt.Sprint("return ", k), number: uint64(k), floor: core.Floor(uint32(k))}
		if r.Table == "2.1" || r.Attempt == "0" {
			a.number = 1 // not counted
		}
		out = append(out, a)
	}
	return out
}
