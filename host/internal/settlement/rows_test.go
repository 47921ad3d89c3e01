// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// row is one line of the settlement table.
type row struct {
	id, table, source, declaration, outcome, attempt, expected string
}

// readRows reads the table that core is tested with.
func readRows(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("../../../core/testdata/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []row
	for s := bufio.NewScanner(f); s.Scan(); {
		c := strings.Split(s.Text(), "\t")
		if len(c) >= 7 && c[1] == "2.1" {
			out = append(out, row{c[0], c[1], c[2], c[3], c[4], c[5], c[6]})
		}
	}
	if len(out) < 120 {
		t.Fatalf("read %d rows", len(out))
	}
	return out
}

// delayD stands for the d of a row.
const delayD = 7 * time.Second

var (
	wireText  = regexp.MustCompile(` \[[^\]]*\]`)
	labelText = regexp.MustCompile(`^([^:(]*): `)
	// besides are the host's own steps, which are in no plan.
	besides = regexp.MustCompile(`^(INFO\(L-DECL\)|ERROR\(L-LEN\)|ERROR\(L-STREAM\)|STOP\(\w+Error\))$`)
)

// part is one case of a row: its label and what it expects.
type part struct{ label, want string }

// parts splits the expected cell; what stands after =CUT is the host's.
func (r row) parts() []part {
	var out []part
	for _, text := range strings.Split(r.expected, " / ") {
		var p part
		text = wireText.ReplaceAllString(text, "")
		if m := labelText.FindStringSubmatch(text); m != nil {
			p.label, text = m[1], text[len(m[0]):]
		}
		var steps []string
		for _, s := range strings.Split(text, "; ") {
			if !besides.MatchString(s) {
				steps = append(steps, s)
			}
			if strings.HasSuffix(s, "=CUT") {
				break
			}
		}
		p.want = strings.NewReplacer("+d(", "+7s(", "(d)", "(7s)").Replace(strings.Join(steps, "; "))
		if p.label != "all" && p.want != "" {
			out = append(out, p)
		}
	}
	return out
}

// kinds reads the kinds that the source cell names, and its conditions.
func (r row) kinds() (names, conditions []string) {
	words := strings.Split(r.source, ", ")
	if words[0] == "any" {
		return []string{"A", "B", "C", "D", "K", "M", "T", "U"}, words[1:]
	}
	for i, w := range words {
		w = strings.TrimPrefix(w, "or ")
		if len(w) != 1 {
			return names, words[i:]
		}
		names = append(names, w)
	}
	return names, nil
}

// capabilities are those of a kind under conditions.
func capabilities(t *testing.T, kind string, conditions []string) core.Capabilities {
	t.Helper()
	c := map[string]core.Capabilities{
		"A": kindA,
		"B": {Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Unsettled: core.UnsettledOnDisconnect},
		"C": kindC,
		"D": {Ack: core.AckSingle, Requeue: core.RequeueDelayed, Reject: core.RejectDrops, Address: "own", Unsettled: core.UnsettledOnDisconnect},
		"K": {Ack: core.AckCumulative, Unsettled: core.UnsettledOnDisconnect},
		"M": kindM,
		"T": {Ack: core.AckSingle, Address: "own", Unsettled: core.UnsettledOnTimeout, MaxHold: 30 * time.Second},
		"U": kindU,
	}[kind]
	for _, w := range conditions {
		key, value, _ := strings.Cut(w, " ")
		d, _ := time.ParseDuration(value)
		switch {
		case w == "no address":
			c.Address = ""
		case w == "counts natively":
			c.Counts = core.CountNative
		case w == "reject dead-letters":
			c.Reject = core.RejectDeadLetters
		case w == "Unsettled lost":
			c.Unsettled = core.UnsettledLost
		case key == "MaxDelay":
			c.MaxDelay = d
		case key == "MaxHold":
			c.MaxHold = d
		}
	}
	return c
}

// declared is the declaration cell.
type declared struct {
	policy  core.Policy
	to      string // t or fn
	header  [][2]string
	backoff time.Duration
}

// declarations reads the declaration cell; a header may have two forms.
func (r row) declarations() []declared {
	if r.declaration == "any" {
		return []declared{{}, {policy: core.Policy{MaxAttempts: 3, DeadLetter: true}}}
	}
	cell, conditions, _ := strings.Cut(r.declaration, "; ")
	var d declared
	for _, w := range strings.Split(cell, ", ") {
		key, value, _ := strings.Cut(w, " ")
		switch key {
		case "cap":
			n, _ := strconv.Atoi(value)
			d.policy.MaxAttempts = uint32(n)
		case "dl":
			d.policy.DeadLetter = true
		case "to", "fn":
			d.policy.RetryTo, d.to = true, strings.TrimSpace(value)
			if key == "fn" {
				d.to = "fn"
			}
		case "backoff":
			d.policy.Backoff = true
			d.backoff, _ = time.ParseDuration(value)
		}
	}
	if value, ok := strings.CutPrefix(conditions, "header "); ok {
		var out []declared
		for _, v := range strings.Split(value, ", or ") {
			v = strings.NewReplacer("byte FF", "\xff", "with a blank before 1", " 1").Replace(v)
			with := d
			with.header = [][2]string{{core.CountHeader, v}}
			out = append(out, with)
		}
		return out
	}
	if strings.HasPrefix(conditions, "headers X-Tenant") {
		d.header = [][2]string{{"X-Tenant", "a"}, {"x-tenant", "b"}}
	}
	return []declared{d}
}

// outcomes reads the outcome cell for one label.
func (r row) outcomes(t *testing.T, label string) []core.Outcome {
	t.Helper()
	cell, _, _ := strings.Cut(r.outcome, ", then ")
	for _, s := range []string{" for all", ", first time", ", again", " 1000 times within a second"} {
		cell = strings.TrimSuffix(cell, s)
	}
	if i := strings.IndexByte(cell, '['); i >= 0 {
		list := strings.Split(strings.Trim(cell[i:], "[]"), ", ")
		n, _ := strconv.Atoi(strings.TrimPrefix(label, "e"))
		if n > len(list) {
			return []core.Outcome{retry()}
		}
		cell = list[n-1]
	}
	if label != "" && strings.Contains(r.source, label+" undecodable") || cell == "no run" {
		cell = "undecodable, default"
	}
	switch cell {
	case "ack, drop or retry":
		var out []core.Outcome
		for _, w := range strings.Split(label, ", ") {
			out = append(out, outcome(t, w))
		}
		return out
	case "panic: default, or OnPanic FailFast":
		cell = map[string]string{"default": "panic, default", "FailFast": "panic, OnPanic FailFast"}[label]
	}
	return []core.Outcome{outcome(t, cell)}
}

// outcome reads one outcome.
func outcome(t *testing.T, cell string) (o core.Outcome) {
	t.Helper()
	cause, rule, _ := strings.Cut(cell, ", ")
	switch {
	case cause == "undecodable":
		o.Cause = core.CauseUndecodable
		rule = strings.TrimPrefix(strings.ReplaceAll(rule, "default", "drop"), "OnUndecodable ")
	case cause == "panic":
		o.Cause = core.CausePanic
		rule = strings.TrimPrefix(strings.ReplaceAll(rule, "default", "retry"), "OnPanic ")
	case strings.HasPrefix(cell, "returns a plain error"):
		o.Cause, rule = core.CauseError, "retry"
	case cell == "reply publish fails":
		o.Cause, rule = core.CauseReplyFailed, "retry"
	case strings.HasPrefix(cell, "none"):
		rule = "none"
	default:
		rule = cell
	}
	if delay, ok := strings.CutPrefix(rule, "retry_after "); ok {
		o.Kind = core.OutcomeRetryAfter
		var err error
		if o.After, err = time.ParseDuration(delay); err != nil {
			o.After = delayD
		}
		return o
	}
	kind, ok := map[string]core.OutcomeKind{
		"ack": core.OutcomeAck, "skip": core.OutcomeAck, "retry": core.OutcomeRetry, "drop": core.OutcomeDrop,
		"dead letter": core.OutcomeDeadLetter, "FailFast": core.OutcomeFailFast, "none": core.OutcomeLeave,
		"delivered": core.OutcomeAck,
	}[rule]
	if !ok {
		t.Fatalf("unknown outcome %q", cell)
	}
	o.Kind = kind
	return o
}

// counts reads the attempt cell for one label: the source's own count, or the
// copies so far.
func (r row) counts(label string) core.Attempt {
	cell, native := strings.CutPrefix(r.attempt, "count ")
	if n, err := strconv.Atoi(label); err == nil {
		cell = strconv.Itoa(n)
	}
	n, _ := strconv.Atoi(cell)
	if native {
		return core.Attempt{Native: uint32(n)}
	}
	return core.Attempt{Copies: uint64(max(n, 1) - 1)}
}

func (r row) String() string {
	return fmt.Sprintf("%s %s | %s | %s", r.id, r.source, r.declaration, r.outcome)
}
