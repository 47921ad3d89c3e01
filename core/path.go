// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strconv"
	"strings"
	"time"
)

// Path is steps in the order in which they were carried out, each with what
// became of it.
type Path []Done

// Path walks the plan with the results that result gives and appends each step
// handed out to into.
func (p *Plan) Path(result func(Step) Result, into Path) Path {
	c := p.Start()
	r := ResultDone
	for {
		s, ok := c.Next(r)
		if !ok {
			return into
		}
		r = result(s)
		into = append(into, Done{Step: s, Result: r})
	}
}

// String returns the plan's steps where each of them succeeds, in the language
// of the settlement reference, the destinations named "retry" and "dead".
func (p *Plan) String() string {
	return p.Path(func(Step) Result { return ResultDone }, nil).String()
}

// Names are the words that a path is printed with. An empty name is the name of
// the route's kind, a nil function prints delays and counts as they are.
type Names struct {
	Retry string // the destination of copies
	Dead  string // the dead letter
	Delay func(time.Duration) string
	Count func(uint64) string
}

// String returns the path as text, the destinations named "retry" and "dead".
func (p Path) String() string { return p.Text(Names{}) }

// Text returns the path in the language of the settlement reference, such as
// "PUBLISH(own,1); ACK=FAILED; WARN(L-DBL)". A path without steps is "NONE".
func (p Path) Text(n Names) string {
	if len(p) == 0 {
		return "NONE"
	}
	b := make([]byte, 0, 24*len(p))
	for i := range p {
		if i > 0 {
			b = append(b, "; "...)
		}
		b = n.step(b, &p[i].Step)
		b = append(b, resultSuffix(p[i].Result)...)
	}
	return string(b)
}

// Text returns the step in the language of the settlement reference.
func (s Step) Text(n Names) string { return string(n.step(nil, &s)) }

func (n *Names) step(b []byte, s *Step) []byte {
	switch s.Do {
	case ActRequeue:
		b = append(b, "REQUEUE"...)
		if s.Delay > 0 {
			b = append(append(append(b, '('), n.delay(s)...), ')')
		}
	case ActHold:
		b = append(append(append(b, "HOLD("...), n.delay(s)...), ')')
	case ActPublish:
		b = n.copy(append(b, "PUBLISH("...), s)
		if s.Delay > 0 {
			b = append(append(b, ",after "...), n.delay(s)...)
		}
		b = append(b, ')')
	case ActPublishLater:
		b = append(append(append(b, "PUBLISH+"...), n.delay(s)...), '(')
		b = append(n.copy(b, s), ')')
	case ActStore:
		b = append(n.copy(append(b, "STORE("...), s), ',')
		b = append(append(b, n.delay(s)...), ')')
	case ActPark:
		b = append(n.copy(append(b, "PARK("...), s), ')')
	case ActLog:
		b = append(append(b, strings.ToUpper(s.Level.String())...), '(')
		b = append(append(b, s.Code.String()...), ')')
	case ActForget, ActForgetLater:
		b = append(b, "FORGET"...)
	case ActStop:
		b = append(b, "STOP(the failure)"...)
	default:
		b = append(b, strings.ToUpper(strings.ReplaceAll(s.Do.String(), "-", ""))...)
	}
	return b
}

func (n *Names) copy(b []byte, s *Step) []byte {
	name := n.Retry
	if s.To == TargetDead {
		name = n.Dead
	}
	if name == "" {
		name = s.To.String()
	}
	b = append(append(b, name...), ',')
	if n.Count != nil {
		return append(b, n.Count(s.Count)...)
	}
	return strconv.AppendUint(b, s.Count, 10)
}

func (n *Names) delay(s *Step) string {
	switch {
	case s.Max:
		return "max"
	case n.Delay != nil:
		return n.Delay(s.Delay)
	default:
		return shortDuration(s.Delay)
	}
}

// shortDuration is d without the zero units that time.Duration prints: 10m, not
// 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func resultSuffix(r Result) string {
	switch r {
	case ResultDone:
		return ""
	case ResultStaleReturns, ResultStaleGone:
		return "=STALE"
	default:
		return "=" + strings.ToUpper(r.String())
	}
}
