// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

// TestDeadLettersThatComeBack is D8: loops are refused at start when they are
// known, and a pattern that reads somebody's dead letter is a warning.
func TestDeadLettersThatComeBack(t *testing.T) {
	dl := func(name string) []host.Rule {
		return []host.Rule{host.MaxAttempts(1), host.DeadLetterTo(dest("in", name))}
	}
	for name, c := range map[string]struct {
		subs  map[string][]host.Rule
		want  []string // refusals
		words []string // of the error
		warns []string // words of the one warning; nil = none
	}{
		"to itself (M-11)": {
			map[string][]host.Rule{"orders/#": dl("orders/dead")}, []string{"orders/#: DeadLetterTo"},
			[]string{"orders/dead@in", "come back to this subscription"}, nil,
		},
		"to another place": {map[string][]host.Rule{"orders/#": dl("dead")}, nil, nil, nil},
		"to a reader of exactly that": {
			map[string][]host.Rule{"orders": dl("dead"), "dead": nil}, nil, nil, nil,
		},
		"to a reader that dead-letters elsewhere": {
			map[string][]host.Rule{"orders": dl("dead"), "dead": dl("deader")}, nil, nil, nil,
		},
		"to a reader that hands it back": {
			map[string][]host.Rule{"orders": dl("dead"), "dead": dl("orders")}, []string{"DeadLetterTo"},
			[]string{"through the dead letters of"}, nil,
		},
		"in a circle of three": {
			map[string][]host.Rule{"a": dl("b"), "b": dl("c"), "c": dl("a")}, []string{"DeadLetterTo"},
			[]string{"through the dead letters of", " and "}, nil,
		},
		"into a circle of others": {
			map[string][]host.Rule{"a": dl("b"), "b": dl("c"), "c": dl("b")}, []string{"DeadLetterTo"}, nil, nil,
		},
		"another one matches it by a pattern": {
			map[string][]host.Rule{"orders": dl("shop/dead"), "shop/#": nil}, nil, nil,
			[]string{"level=WARN", "code=L-CHECK", "subscription=orders", "option=DeadLetterTo", "shop/#"},
		},
		"the pattern leads back": {
			map[string][]host.Rule{"orders": dl("shop/dead"), "shop/#": dl("orders")}, []string{"DeadLetterTo"}, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService()
			in := attach(s.Host, "in", newQueues())
			for sub, rules := range c.subs {
				host.Handle(in.Subscription(sub), acks, rules...)
			}
			if c.want != nil {
				e := startError(t, s)
				if len(e.Findings) != len(c.want) || !strings.Contains(strings.Join(options(e), "\n"), c.want[0]) {
					t.Errorf("got %v, want %v", e, c.want)
				}
				for _, w := range c.words {
					if !strings.Contains(e.Error(), w) {
						t.Errorf("%q does not stand in %q", w, e)
					}
				}
				return
			}
			s.serve(t)
			lines := s.log.lines("code=L-CHECK")
			if c.warns == nil {
				if len(lines) > 0 {
					t.Errorf("warned: %v", lines)
				}
			} else if got := s.log.lines(c.warns...); len(got) != 1 || len(lines) != 1 {
				t.Errorf("got %v, want one line with %v", lines, c.warns)
			}
		})
	}
}

// TestDestinationsThatNothingCarries is the other half of D8: what a transport
// refuses of a destination names the rule and the subscription.
func TestDestinationsThatNothingCarries(t *testing.T) {
	q := newQueues()
	q.targets = func(t pluginapi.Target) *pluginapi.TargetReport {
		if t.Name != "nothing" {
			return nil
		}
		return &pluginapi.TargetReport{Findings: []pluginapi.Finding{{
			Message: "this endpoint dials to read", Fix: "name a destination on another endpoint",
		}}}
	}
	s := newService()
	in, out := attach(s.Host, "in", newQueues()), attach(s.Host, "out", q)
	nothing := out.To("nothing")
	host.Handle(in.Subscription("a"), acks, host.RetryTo(nothing), host.MaxAttempts(2))
	host.Handle(in.Subscription("b"), acks, host.DeadLetterTo(nothing))
	host.Handle(in.Subscription("c"), acks, host.Forward(nothing))
	host.To[[]byte](s.Host, nothing)
	e := startError(t, s)
	want := []string{": To", "a: RetryTo", "b: DeadLetterTo", "c: Forward"}
	if diff := cmp.Diff(want, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
	}
	for _, f := range e.Findings {
		if !strings.Contains(f.Message, "nothing@out") || f.Fix == "" || len(f.Places) != 1 {
			t.Errorf("%v lacks the destination, the fix or the place", f)
		}
	}
}

func TestCopiesNeedHeaders(t *testing.T) {
	plain := newQueues()
	plain.publishing.Headers = core.HeadersNone
	s := newService()
	in, out := attach(s.Host, "in", newQueues()), attach(s.Host, "out", plain)
	host.Handle(in.Subscription("a"), acks, host.RetryTo(out.To("x")), host.MaxAttempts(2))
	e := startError(t, s)
	if diff := cmp.Diff([]string{"a: RetryTo"}, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
	}
}

// TestForwardsThatComeBack refuses what would go round for ever.
func TestForwardsThatComeBack(t *testing.T) {
	fw := func(name string) []host.Rule { return []host.Rule{host.Forward(dest("in", name))} }
	for name, c := range map[string]struct {
		subs  map[string][]host.Rule
		words []string // of the refusal; nil = none
		warns []string // of the one warning; nil = none
	}{
		"to another place": {map[string][]host.Rule{"a": fw("b")}, nil, nil},
		"to a reader":      {map[string][]host.Rule{"a": fw("b"), "b": fw("c")}, nil, nil},
		"to itself": {
			map[string][]host.Rule{"a": fw("a")}, []string{"subscription a", "Forward", "a@in", "come back to this subscription"}, nil,
		},
		"round": {
			map[string][]host.Rule{"a": fw("b"), "b": fw("a")}, []string{"Forward", "through the forwarded messages of"}, nil,
		},
		"by a pattern": {
			map[string][]host.Rule{"a/#": fw("a/done")}, nil, []string{"code=L-CHECK", "option=Forward", "subscription=a/#"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService()
			in := attach(s.Host, "in", newQueues())
			for sub, rules := range c.subs {
				host.Handle(in.Subscription(sub), acks, rules...)
			}
			if c.words != nil {
				e := startError(t, s)
				if len(e.Findings) != 1 {
					t.Errorf("got %v, want one finding", e)
				}
				for _, w := range c.words {
					if !strings.Contains(e.Error(), w) {
						t.Errorf("%q does not stand in %q", w, e)
					}
				}
				return
			}
			s.serve(t)
			lines := s.log.lines("code=L-CHECK")
			if c.warns == nil && len(lines) > 0 || c.warns != nil && (len(lines) != 1 || len(s.log.lines(c.warns...)) != 1) {
				t.Errorf("got %v, want one line with %v", lines, c.warns)
			}
		})
	}
}
