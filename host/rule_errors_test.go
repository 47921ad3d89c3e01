// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

var (
	errGone  = errors.New("gone")
	errOther = errors.New("other")
)

// odd is an error that cannot be compared.
type odd []string

func (odd) Error() string { return "odd" }

func TestOnErrorSaysWhatAnErrorCountsAs(t *testing.T) {
	after := func(d time.Duration) settlement.Said {
		return settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, Cause: core.CauseError, After: d}}
	}
	kind := func(k core.OutcomeKind) settlement.Said {
		return settlement.Said{Outcome: core.Outcome{Kind: k, Cause: core.CauseError}}
	}
	never := kind(core.OutcomeRetry)
	never.Spent = true
	panicked := settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}, Thrown: "broken match"}
	constant := Backoff(Constant(time.Second).Jitter(0))
	for name, c := range map[string]struct {
		rules []Rule
		err   error
		want  settlement.Said
	}{
		"none fits":            {[]Rule{OnError(Is(errGone), AsDrop)}, errOther, kind(core.OutcomeRetry)},
		"Is":                   {[]Rule{OnError(Is(errOther, errGone), AsDrop)}, errGone, kind(core.OutcomeDrop)},
		"Is, wrapped":          {[]Rule{OnError(Is(errGone), AsDrop)}, fmt.Errorf("find: %w", errGone), kind(core.OutcomeDrop)},
		"Is, joined":           {[]Rule{OnError(Is(errGone), AsDrop)}, errors.Join(errOther, errGone), kind(core.OutcomeDrop)},
		"Is, of what it is":    {[]Rule{OnError(Is(fs.ErrNotExist), AsDrop)}, &fs.PathError{Err: fs.ErrNotExist}, kind(core.OutcomeDrop)},
		"As":                   {[]Rule{OnError(As[*net.OpError](), AsRetryAfter(time.Minute))}, fmt.Errorf("send: %w", &net.OpError{Err: errGone}), after(time.Minute)},
		"As an interface":      {[]Rule{OnError(As[net.Error](), AsAck)}, &net.DNSError{IsTimeout: true}, kind(core.OutcomeAck)},
		"When":                 {[]Rule{OnError(When(func(err error) bool { return err == errGone }), AsDeadLetter)}, errGone, kind(core.OutcomeDeadLetter)}, //nolint:errorlint // the value itself
		"the first that fits":  {[]Rule{OnError(Is(errOther), AsAck), OnError(When(func(error) bool { return true }), AsDrop), OnError(Is(errGone), AsAck)}, errGone, kind(core.OutcomeDrop)},
		"never retried":        {[]Rule{OnError(Is(errGone), NeverRetry), constant}, errGone, never},
		"a retry backs off":    {[]Rule{OnError(Is(errGone), AsRetry), constant}, errGone, after(time.Second)},
		"its own time":         {[]Rule{OnError(Is(errGone), AsRetryAfter(0)), constant}, errGone, after(0)},
		"stop":                 {[]Rule{OnError(Is(errGone), FailFast)}, errGone, kind(core.OutcomeFailFast)},
		"what it says itself":  {[]Rule{OnError(Is(errGone), AsDrop)}, DeadLetter(errGone), kind(core.OutcomeDeadLetter)},
		"that, wrapped":        {[]Rule{OnError(Is(errGone), AsDrop)}, fmt.Errorf("ship: %w", RetryAfter(time.Hour, errGone)), after(time.Hour)},
		"a match that panics":  {[]Rule{OnError(When(func(error) bool { panic("broken match") }), AsDrop)}, errGone, panicked},
		"an error of no value": {[]Rule{OnError(Is(odd{"a"}), AsDrop)}, odd{"a"}, kind(core.OutcomeRetry)},
	} {
		t.Run(name, func(t *testing.T) {
			rules, found := resolve(c.rules, nil)
			if len(found) > 0 {
				t.Fatal(found)
			}
			calls := calls{rules: &rules}
			got := calls.judge(t.Context(), &settlement.Delivery{Number: 1}, c.err)
			if got.Err == nil {
				t.Error("no cause is there")
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(settlement.Said{}, "Err", "Stack")); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}

// What a stop has cancelled is no error, and a panic is told by OnPanic.
func TestOnErrorIsNotAsked(t *testing.T) {
	rules, _ := resolve([]Rule{OnError(When(func(error) bool { return true }), AsDrop), OnPanic(NeverRetry)}, nil)
	calls := calls{rules: &rules}
	ctx, cancel := context.WithCancel(t.Context())
	got := calls.judge(ctx, &settlement.Delivery{}, fmt.Errorf("middleware: %w", &PanicError{Value: "x"}))
	if got.Outcome != (core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}) || !got.Spent {
		t.Errorf("a panic is %+v", got)
	}
	cancel()
	if got := calls.judge(ctx, &settlement.Delivery{}, errGone); got.Outcome.Kind != core.OutcomeLeave {
		t.Errorf("at a stop it is %+v", got)
	}
}

func TestErrorMatchesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		rules  []Rule
		places int
	}{
		"the zero match":        {[]Rule{OnError(ErrorMatch{}, AsDrop)}, 1},
		"Is of nothing":         {[]Rule{OnError(Is(), AsDrop)}, 1},
		"Is of nil":             {[]Rule{OnError(Is(errGone, nil), AsDrop)}, 1},
		"As of every error":     {[]Rule{OnError(As[error](), AsDrop)}, 1},
		"When without function": {[]Rule{OnError(When(nil), AsDrop)}, 1},
		"no reaction":           {[]Rule{OnError(Is(errGone), -77)}, 1},
		"the same error":        {[]Rule{OnError(Is(errGone), AsDrop), OnError(Is(errOther, errGone), AsAck)}, 2},
		"the same type":         {[]Rule{OnError(As[*net.OpError](), AsDrop), OnError(As[*net.OpError](), AsAck)}, 2},
		"others":                {[]Rule{OnError(Is(errGone), AsDrop), OnError(Is(errOther), AsAck), OnError(As[*net.OpError](), AsAck), OnError(As[net.Error](), AsAck)}, 0},
		"no values":             {[]Rule{OnError(Is(odd{"a"}), AsDrop), OnError(Is(odd{"a"}), AsAck)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := resolve(c.rules, nil)
			n := 0
			for _, f := range found {
				n += len(f.Places)
				if f.Option != "OnError" || f.Message == "" || f.Fix == "" {
					t.Errorf("%+v lacks something", f)
				}
				for _, p := range f.Places {
					if !strings.HasPrefix(p, "host/rule_errors_test.go:") {
						t.Errorf("place %q is not where the rule was given", p)
					}
				}
			}
			if n != c.places {
				t.Errorf("%d places in %v, want %d", n, found, c.places)
			}
		})
	}
}

func TestErrorMatchesInWords(t *testing.T) {
	rules, _ := resolve([]Rule{
		OnError(Is(errGone, errOther), NeverRetry), OnError(As[*net.OpError](), AsRetryAfter(time.Second)),
		OnError(When(func(error) bool { return false }), AsAck),
	}, nil)
	classes := rules.errorClasses()
	if m := classes[2].Match; !strings.HasPrefix(m, "When(host/rule_errors_test.go:") {
		t.Errorf("When is %q", m)
	}
	classes[2].Match = "When"
	want := []core.ErrorClass{
		{Match: "Is(gone, other)", Reaction: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeRetry}, Spent: true}},
		{Match: "As(*net.OpError)", Reaction: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, After: time.Second}}},
		{Match: "When", Reaction: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeAck}}},
	}
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}
