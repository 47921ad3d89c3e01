// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

func TestOutcomeOf(t *testing.T) {
	plain := errors.New("no stock")
	for name, c := range map[string]struct {
		err   error
		want  core.Outcome
		cause string
	}{
		"nil acks (S-GEN-01)": {nil, core.Outcome{Kind: core.OutcomeAck}, ""},
		"a plain error is a retry (S-GEN-44, D24)": {
			plain, core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, "no stock",
		},
		"retry without a cause":   {Retry(nil), core.Outcome{Kind: core.OutcomeRetry}, ""},
		"retry with a cause":      {Retry(plain), core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, "no stock"},
		"retry later":             {RetryAfter(time.Second, nil), core.Outcome{Kind: core.OutcomeRetryAfter, After: time.Second}, ""},
		"a delay below 0 (E-12)":  {RetryAfter(-5*time.Second, nil), core.Outcome{Kind: core.OutcomeRetryAfter}, ""},
		"drop":                    {Drop(nil), core.Outcome{Kind: core.OutcomeDrop}, ""},
		"dead letter (S-GEN-95)":  {DeadLetter(plain), core.Outcome{Kind: core.OutcomeDeadLetter, Cause: core.CauseError}, "no stock"},
		"leave (S-GEN-69)":        {Leave(), core.Outcome{Kind: core.OutcomeLeave}, ""},
		"wrapped by the handler":  {fmt.Errorf("order 7: %w", Drop(plain)), core.Outcome{Kind: core.OutcomeDrop, Cause: core.CauseError}, "order 7: no stock"},
		"the outermost one holds": {DeadLetter(Retry(plain)), core.Outcome{Kind: core.OutcomeDeadLetter, Cause: core.CauseError}, "no stock"},
		"joined with another":     {errors.Join(plain, Drop(nil)), core.Outcome{Kind: core.OutcomeDrop, Cause: core.CauseError}, "no stock\ndrop"},
	} {
		t.Run(name, func(t *testing.T) {
			got, cause := outcomeOf(c.err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			text := ""
			if cause != nil {
				text = cause.Error()
			}
			if diff := cmp.Diff(c.cause, text); diff != "" {
				t.Errorf("cause (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcomesAreSeenThrough(t *testing.T) {
	for _, err := range []error{Retry(io.EOF), RetryAfter(time.Second, io.EOF), Drop(io.EOF), DeadLetter(io.EOF)} {
		if !errors.Is(fmt.Errorf("wrapped: %w", err), io.EOF) {
			t.Errorf("%v hides its cause", err)
		}
	}
}

func TestReactions(t *testing.T) {
	for name, c := range map[string]struct {
		r    Reaction
		want core.Outcome
	}{
		"fail fast (S-GEN-45)": {FailFast, core.Outcome{Kind: core.OutcomeFailFast, Cause: core.CausePanic}},
		"skip (S-GEN-47)":      {AsAck, core.Outcome{Kind: core.OutcomeAck, Cause: core.CausePanic}},
		"retry":                {AsRetry, core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}},
		"drop":                 {AsDrop, core.Outcome{Kind: core.OutcomeDrop, Cause: core.CausePanic}},
		"dead letter":          {AsDeadLetter, core.Outcome{Kind: core.OutcomeDeadLetter, Cause: core.CausePanic}},
		"retry later":          {AsRetryAfter(time.Minute), core.Outcome{Kind: core.OutcomeRetryAfter, After: time.Minute, Cause: core.CausePanic}},
		"retry at once":        {AsRetryAfter(-time.Minute), core.Outcome{Kind: core.OutcomeRetryAfter, Cause: core.CausePanic}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.r.outcome(core.CausePanic)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if !c.r.valid() {
				t.Error("not valid")
			}
		})
	}
	if Reaction(-100).valid() {
		t.Error("-100 is valid")
	}
}
