// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Stored returns what a destination can do where a row says nothing else.
func Stored() core.Publishing {
	return core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, Headers: core.HeadersNativeBytes, Repeats: true}
}

// Kinds returns the kinds of the transport-neutral table.
func Kinds() map[string]core.Capabilities {
	return map[string]core.Capabilities{
		"A": {Ack: core.AckSingle, Requeue: core.RequeueNow, Reject: core.RejectDrops, Address: "own", Unsettled: core.UnsettledOnDisconnect},
		"B": {Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Unsettled: core.UnsettledOnDisconnect},
		"C": {Ack: core.AckSingle, Requeue: core.RequeueNow, Reject: core.RejectDrops, Counts: core.CountNative, Address: "own", Unsettled: core.UnsettledOnDisconnect},
		"D": {Ack: core.AckSingle, Requeue: core.RequeueDelayed, Reject: core.RejectDrops, Address: "own", Unsettled: core.UnsettledOnDisconnect},
		"K": {Ack: core.AckCumulative, Unsettled: core.UnsettledOnDisconnect},
		"M": {Ack: core.AckSingle, Address: "own", Unsettled: core.UnsettledOnResume},
		"T": {Ack: core.AckSingle, Address: "own", Unsettled: core.UnsettledOnTimeout, MaxHold: 30 * time.Second},
		"U": {Address: "own"},
	}
}

// source is one source that a row speaks of, as the case of a decision.
type source struct {
	name    string
	address string // what the own address is called in the row
	c       core.Case
}

func (r Row) sources(label string) ([]source, error) {
	switch r.Table {
	case "2.1":
		return r.kindSources(label)
	case "2.2":
		return r.bareSources(strings.Contains(r.Source, "bound"))
	case "2.3":
		return r.bareSources(true)
	case "2.4":
		return r.bareSources(strings.Contains(r.Source, "loopback"))
	case "2.5":
		return r.mqttSources(label)
	case "2.6":
		return r.pulsarSources()
	default:
		return nil, fmt.Errorf("unknown table %q", r.Table)
	}
}

// kindSources reads the first cell of table 2.1: kinds, then conditions from a
// closed list.
func (r Row) kindSources(label string) ([]source, error) {
	words := strings.Split(r.Source, ", ")
	names := []string{words[0]}
	if words[0] == "any" {
		names = []string{"A", "B", "C", "D", "K", "M", "T", "U"}
	}
	var out []source
	rest := words[1:]
	for len(rest) > 0 && (strings.HasPrefix(rest[0], "or ") || Kinds()[rest[0]].Ack != 0 || rest[0] == "U") {
		names = append(names, strings.TrimPrefix(rest[0], "or "))
		rest = rest[1:]
	}
	for _, n := range names {
		caps, ok := Kinds()[n]
		if !ok {
			return nil, fmt.Errorf("unknown kind %q", n)
		}
		s := source{name: n, address: "own", c: core.Case{Source: caps, Retry: core.Route{State: core.RouteOpen, Caps: Stored()}}}
		for _, w := range rest {
			if err := s.condition(w, label); err != nil {
				return nil, err
			}
		}
		if err := s.c.Source.Valid(); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (s *source) condition(w, label string) error {
	key, value, _ := strings.Cut(w, " ")
	switch {
	case w == "no address":
		s.c.Source.Address = ""
	case w == "counts natively":
		s.c.Source.Counts = core.CountNative
	case w == "reject dead-letters":
		s.c.Source.Reject = core.RejectDeadLetters
	case w == "Unsettled lost":
		s.c.Source.Unsettled = core.UnsettledLost
	case key == "MaxDelay" || key == "MaxHold":
		d, err := time.ParseDuration(value)
		if err != nil {
			return err
		}
		if key == "MaxDelay" {
			s.c.Source.MaxDelay = d
		} else {
			s.c.Source.MaxHold = d
		}
	case w == "journal":
		s.c.Journal = true
	case w == "bound of waiting copies reached":
		s.c.Full = true
	case w == "own delays by itself":
		s.c.Retry.Caps.MaxDelay = time.Hour
	case w == "own read by this process alone":
		s.c.Retry.Caps.Retains = core.RetainProcess
	case w == "its plugin dies while the handler runs":
		s.c.Void = map[string]core.Void{"returns": core.VoidReturns, "does not return": core.VoidGone}[label]
		if s.c.Void == core.VoidLive {
			return fmt.Errorf("label %q says nothing of the delivery", label)
		}
	case strings.HasPrefix(w, "batch of "), strings.HasSuffix(w, " undecodable"):
		// The outcome cell and the label say what each element is.
	case outcomeOfSteps[w]:
		// The expected cell marks the steps that it is about.
	default:
		return fmt.Errorf("unknown condition %q", w)
	}
	return nil
}

// outcomeOfSteps are the conditions about what becomes of a step; the steps of
// the expected cell carry the same as results.
var outcomeOfSteps = map[string]bool{
	"publish fails beyond the bound":           true,
	"publish refused for good":                 true,
	"receipt unknown":                          true,
	"publish fails and heals within the bound": true,
	"the ack fails":                            true,
	"the store fails":                          true,
	"publish and park fail":                    true,
	"the ack is stale after the copy":          true,
}

// bareSources are the sources of ZeroMQ, file and stdio: kind U.
func (r Row) bareSources(address bool) ([]source, error) {
	s := source{name: "U", address: "own", c: core.Case{Source: Kinds()["U"], Retry: core.Route{State: core.RouteOpen, Caps: Stored()}}}
	if !address {
		s.c.Source.Address = ""
	}
	if strings.Contains(r.Source, "fan-out bound `events`") {
		s.address = "events"
	}
	if r.Table == "2.2" && strings.Contains(r.Source, "delayed copy pending") {
		s.c.Retry.Caps.Retains = core.RetainProcess
	}
	return []source{s}, nil
}

var (
	sharedTopicRE = regexp.MustCompile("topic `\\$share/\\w+/(\\w+)`")
	plainTopicRE  = regexp.MustCompile("topic `([a-z/]+)`")
)

// mqttSources reads the first cell of table 2.5.
func (r Row) mqttSources(label string) ([]source, error) {
	if strings.Contains(r.Source, "any QoS") {
		one, zero := r, r
		one.Source, zero.Source = "topic QoS1", "topic QoS0"
		a, err := one.mqttSources(label)
		if err != nil {
			return nil, err
		}
		b, err := zero.mqttSources(label)
		return append(a, b...), err
	}
	s := source{name: "M", address: "own", c: core.Case{Source: Kinds()["M"], Retry: core.Route{State: core.RouteOpen, Caps: Stored()}}}
	s.c.Source.Unsettled = core.UnsettledLost
	if strings.Contains(r.Source, "session kept") {
		s.c.Source.Unsettled = core.UnsettledOnResume
	}
	if strings.Contains(r.Source, "QoS0") {
		s.name, s.c.Source = "U", Kinds()["U"]
	}
	if strings.Contains(r.Source, "filter `") && !strings.HasPrefix(r.Source, "topic `") {
		s.c.Source.Address = ""
	}
	if m := sharedTopicRE.FindStringSubmatch(r.Source); m != nil {
		s.address = m[1]
	} else if m := plainTopicRE.FindStringSubmatch(r.Source); m != nil {
		s.address = m[1]
	}
	switch label {
	case "session kept", "session resumes":
		s.c.Void = core.VoidReturns
	case "new session":
		s.c.Void = core.VoidGone
	case "else":
		s.c.Void = core.VoidGone
	}
	return []source{s}, nil
}

var ackTimeoutRE = regexp.MustCompile(`ack_timeout (\d+s)`)

// pulsarSources reads the first cell of table 2.6.
func (r Row) pulsarSources() ([]source, error) {
	caps := Kinds()["B"]
	if m := ackTimeoutRE.FindStringSubmatch(r.Source); m != nil {
		d, err := time.ParseDuration(m[1])
		if err != nil {
			return nil, err
		}
		caps.MaxDelay, caps.MaxHold, caps.Unsettled = d, d, core.UnsettledOnTimeout
	}
	shared := source{name: "Shared", c: core.Case{Source: caps}}
	caps.Counts = core.CountNone
	exclusive := source{name: "Exclusive", c: core.Case{Source: caps}}
	switch {
	case strings.Contains(r.Source, "any type"):
		return []source{shared, exclusive}, nil
	case strings.Contains(r.Source, "Exclusive"):
		return []source{exclusive}, nil
	default: // Shared, KeyShared, or a bare topic name, which is Shared
		return []source{shared}, nil
	}
}

// said is one outcome that a row speaks of.
type said struct {
	name    string
	outcome core.Outcome
	under   time.Duration
}

var timesRE = regexp.MustCompile(` ×\w+$`)

// outcomes reads the outcome cell for one label.
func (r Row) outcomes(label string) ([]said, error) {
	cell := timesRE.ReplaceAllString(r.Outcome, "")
	cell, _, _ = strings.Cut(cell, ", then ")
	if strings.HasPrefix(cell, "none") {
		return parseOutcome("none")
	}
	cell, _, _ = strings.Cut(cell, " ×")
	cell = strings.TrimSuffix(cell, " for all")
	for _, s := range []string{" on a/b", " on a", ", first time", ", again", " 1000 times within a second", " each"} {
		cell = strings.TrimSuffix(cell, s)
	}
	if i := strings.IndexByte(cell, '['); i >= 0 {
		return r.element(strings.Split(strings.Trim(cell[i:], "[]"), ", "), label)
	}
	if strings.HasPrefix(label, "e") && label != "each" && label != "else" && strings.Contains(r.Source, label+" undecodable") {
		return parseOutcome("undecodable, default")
	}
	switch cell {
	case "ack or drop":
		return parseOutcomes("ack", "drop")
	case "ack, drop or retry", "retry or none":
		return parseOutcomes(strings.Split(label, ", ")...)
	case "retry or retry_after":
		return parseOutcomes("retry", "retry_after d")
	case "panic: default, or OnPanic FailFast":
		return parseOutcome(map[string]string{"default": "panic, default", "FailFast": "panic, OnPanic FailFast"}[label])
	case "X ack, Y ack":
		return parseOutcome("ack")
	case "X ack, Y none":
		return parseOutcome(map[string]string{"X": "ack", "Y": "none"}[label])
	case "start, or retry":
		return parseOutcome("retry")
	case "no run":
		return parseOutcome("undecodable, default")
	case "SIGTERM", "SIGTERM, or end of stdin", "SIGTERM, kill -9, or its plugin ends":
		return parseOutcome("retry_after d") // what was pending
	}
	if before, ok := strings.CutSuffix(cell, " or more"); ok {
		return parseOutcome(before)
	}
	return parseOutcome(cell)
}

// element returns the outcome of one element of a batch; what a list leaves
// out is a retry.
func (r Row) element(list []string, label string) ([]said, error) {
	var n int
	if _, err := fmt.Sscanf(label, "e%d", &n); err != nil {
		return nil, fmt.Errorf("label %q of a batch: %w", label, err)
	}
	if n > len(list) {
		return parseOutcome("retry")
	}
	return parseOutcome(list[n-1])
}

func parseOutcomes(cells ...string) ([]said, error) {
	var out []said
	for _, c := range cells {
		o, err := parseOutcome(c)
		if err != nil {
			return nil, err
		}
		out = append(out, o...)
	}
	return out, nil
}

// parseOutcome reads one outcome.
func parseOutcome(cell string) ([]said, error) {
	o := said{name: cell}
	cause, rule, _ := strings.Cut(cell, ", ")
	switch {
	case cause == "undecodable":
		o.outcome.Cause = core.CauseUndecodable
		if rule == "default" {
			rule = "drop"
		}
		rule = strings.TrimPrefix(rule, "OnUndecodable ")
	case cause == "panic":
		o.outcome.Cause = core.CausePanic
		if rule == "default" {
			rule = "retry"
		}
		rule = strings.TrimPrefix(rule, "OnPanic ")
	case strings.HasPrefix(cell, "returns a plain error"):
		o.outcome.Cause, rule = core.CauseError, "retry"
	case cell == "reply publish fails", cell == "reply to a peer that left":
		o.outcome.Cause, rule = core.CauseReplyFailed, "retry"
	default:
		rule = cell
	}
	word, after, _ := strings.Cut(rule, " ")
	switch {
	case rule == "dead letter":
		o.outcome.Kind = core.OutcomeDeadLetter
	case word == "ack" || word == "skip":
		o.outcome.Kind = core.OutcomeAck
	case word == "drop":
		o.outcome.Kind = core.OutcomeDrop
	case word == "retry":
		o.outcome.Kind = core.OutcomeRetry
	case word == "retry_after":
		o.outcome.Kind, o.outcome.After = core.OutcomeRetryAfter, Delay
		if after != "" && after != "d" {
			d, err := time.ParseDuration(after)
			if err != nil {
				return nil, err
			}
			o.outcome.After = d
		}
	case word == "FailFast":
		o.outcome.Kind = core.OutcomeFailFast
	case word == "none" || word == "delivered":
		o.outcome.Kind = core.OutcomeLeave
	default:
		return nil, fmt.Errorf("unknown outcome %q", cell)
	}
	return []said{o}, nil
}
