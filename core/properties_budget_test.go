// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

import (
	"math"
	"testing"

	"github.com/longshore-go/longshore/core"
)

// A retry for which no attempt is left goes the way of one at the cap, whether or
// not a cap is declared; other outcomes do not read it.
func TestPropertySpentIsTheCap(t *testing.T) { report(t, "spent is the cap") }

func spentIsTheCap(s *situation) string {
	if !s.c.Spent {
		return ""
	}
	p, c := s.policy, s.c
	c.Spent = false
	if k := c.Outcome.Kind; core.Admit(&p, &c) && (k == core.OutcomeRetry || k == core.OutcomeRetryAfter) {
		p.MaxAttempts = 1
		switch {
		case c.Source.Counts == core.CountNative:
			c.Attempt.Native = 1
		case c.Retry.State == core.RouteNone:
			return "" // the attempt is unknown, and no cap is ever reached
		}
	}
	var plan core.Plan
	if core.Decide(&p, &c, &plan); plan != s.plan {
		return "at the cap it is " + plan.String()
	}
	return ""
}

// With a budget of time that is not used up a retry goes the way of one below a
// cap; where there is no cap as well, the floor still holds.
func TestPropertyABudgetIsACap(t *testing.T) { report(t, "a budget is a cap") }

func aBudgetIsACap(s *situation) string {
	if !s.policy.Elapsed || s.c.Spent {
		return ""
	}
	p, c := s.policy, s.c
	p.Elapsed = false
	if p.MaxAttempts == 0 {
		p.MaxAttempts = math.MaxUint32
		if c.Attempt.Copies >= math.MaxUint32-1 || c.Attempt.Native == math.MaxUint32 || c.Floor > 0 {
			return ""
		}
	}
	var plan core.Plan
	if core.Decide(&p, &c, &plan); plan != s.plan {
		return "under a cap it is " + plan.String()
	}
	return ""
}
