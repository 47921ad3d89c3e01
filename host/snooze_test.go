// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// A Snooze is told to the engine as one, with what holds where it cannot be: a
// retry after the same time, which no Backoff, OnError or cap of the rules changes.
func TestSnoozeIsTold(t *testing.T) {
	rules, found := resolve([]Rule{
		Backoff(Constant(time.Hour)), OnError(When(func(error) bool { return true }), AsDrop), SnoozeLimit(3, time.Minute),
	}, nil)
	if len(found) > 0 || rules.snoozes != 3 || rules.snoozedIn != time.Minute {
		t.Fatalf("found %v, bounds %d in %v", found, rules.snoozes, rules.snoozedIn)
	}
	early := errors.New("too early")
	for name, c := range map[string]struct {
		err   error
		after time.Duration
		cause core.Cause
		text  string
	}{
		"plain":         {Snooze(time.Second, early), time.Second, core.CauseError, "too early"},
		"wrapped":       {fmt.Errorf("ship: %w", Snooze(time.Second, early)), time.Second, core.CauseError, "ship: too early"},
		"without cause": {Snooze(time.Second, nil), time.Second, core.CauseReturned, "snooze 1s"},
		"below 0":       {Snooze(-time.Second, nil), 0, core.CauseReturned, "snooze 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := calls{rules: &rules}
			said := calls.judge(t.Context(), &settlement.Delivery{Number: 1}, c.err)
			want := core.Outcome{Kind: core.OutcomeRetryAfter, Cause: c.cause, After: c.after}
			if !said.Snooze || said.Outcome != want || said.Spent {
				t.Errorf("said %+v, want a snooze that is else %+v", said, want)
			}
			if c.err.Error() != c.text {
				t.Errorf("text %q, want %q", c.err, c.text)
			}
		})
	}
	if set, _ := resolve(nil, nil); set.snoozes != 100 || set.snoozedIn != time.Hour {
		t.Errorf("by default %d in %v", set.snoozes, set.snoozedIn)
	}
}
