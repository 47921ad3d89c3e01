// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/rows"
)

// What no row shows.
func TestCheck(t *testing.T) {
	a, b := rows.Kinds()["A"], rows.Kinds()["B"]
	counting := rows.Kinds()["M"]
	counting.Counts = core.CountNative
	refused := core.Route{To: core.Destination{Name: "t"}, State: core.RouteRefused}
	plain := open
	plain.Caps.Headers = core.HeadersNone
	limited := rows.Kinds()["C"]
	limited.MaxHold = 30 * time.Second
	for _, tt := range []struct {
		name        string
		p           core.Policy
		s           core.Capabilities
		retry, dead core.Route
		d           core.Declared
		refuses     string // options, joined
		warns       string
	}{
		{name: "all well", p: core.Policy{MaxAttempts: 3, DeadLetter: true}, s: a, retry: open, dead: open, d: core.Declared{Cap: true, DeadLetter: true}},
		{name: "nothing can carry the copies", s: a, retry: refused, d: core.Declared{RetryTo: true}, refuses: "RetryTo"},
		{name: "nothing can carry the dead letter", p: core.Policy{DeadLetter: true}, s: a, retry: open, dead: refused, refuses: "DeadLetterTo"},
		{name: "a dead letter to nowhere", p: core.Policy{DeadLetter: true}, s: a, retry: open, refuses: "DeadLetterTo"},
		{name: "copies without headers", p: core.Policy{MaxAttempts: 3}, s: a, retry: plain, refuses: "RetryTo"},
		{name: "dead letters without headers", p: core.Policy{DeadLetter: true}, s: a, retry: open, dead: plain, warns: "DeadLetterTo"},
		{name: "nonsense", s: a, retry: open, d: core.Declared{Cap: true, LongestBackoff: -1, Floor: -1, Workers: -1}, refuses: "MaxAttempts Backoff Floor Workers"},
		{name: "capabilities that contradict", s: core.Capabilities{Extend: true}, retry: open, refuses: "-"},
		{name: "a count without a way back", p: core.Policy{MaxAttempts: 3}, s: counting, warns: "MaxAttempts"},
		{name: "a count without a way back, one attempt", p: core.Policy{MaxAttempts: 1}, s: counting},
		{name: "backoff within a hold", p: core.Policy{Backoff: true, MaxAttempts: 3}, s: limited, d: core.Declared{LongestBackoff: 29 * time.Second}},
		{name: "backoff beyond the hold", p: core.Policy{Backoff: true, MaxAttempts: 3}, s: limited, d: core.Declared{LongestBackoff: 30 * time.Second}, refuses: "Backoff"},
		{name: "backoff that a copy carries", p: core.Policy{Backoff: true}, s: a, retry: open, d: core.Declared{LongestBackoff: time.Hour}},
		{name: "backoff that nothing asks for", p: core.Policy{Backoff: true, DeadLetter: true}, s: b, dead: open, d: core.Declared{LongestBackoff: time.Hour}},
		{name: "backoff on a source that takes nothing back", p: core.Policy{Backoff: true, MaxAttempts: 1}, s: counting, d: core.Declared{LongestBackoff: time.Hour}, refuses: "Backoff"},
		{name: "backoff whose copies have no destination", p: core.Policy{Backoff: true, MaxAttempts: 3}, s: rows.Kinds()["U"], d: core.Declared{LongestBackoff: time.Hour}, refuses: "RetryTo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var refuses, warns []string
			found := core.Check(tt.p, []core.Capabilities{tt.s, tt.s}, tt.retry, tt.dead, tt.d)
			for _, f := range found {
				option := f.Option
				if option == "" {
					option = "-"
				}
				if f.Warning {
					warns = append(warns, option)
				} else {
					refuses = append(refuses, option)
				}
				if f.Message == "" || f.Fix == "" || !strings.HasSuffix(f.String(), f.Fix) {
					t.Errorf("%+v does not say what is wrong and what to do", f)
				}
				if f.Warning && len(refuses) < strings.Count(tt.refuses, " ") {
					t.Error("a warning stands before a refusal")
				}
			}
			if got := strings.Join(refuses, " "); got != tt.refuses {
				t.Errorf("refuses %q, want %q: %v", got, tt.refuses, found)
			}
			if got := strings.Join(warns, " "); got != tt.warns {
				t.Errorf("warns of %q, want %q: %v", got, tt.warns, found)
			}
		})
	}
}
