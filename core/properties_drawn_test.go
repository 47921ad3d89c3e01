// SPDX-License-Identifier: Apache-2.0

//go:build !race

package core_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
)

// What the walk does not vary is drawn: limits, delays, counts, causes, routes.
func TestPropertiesOfDrawnCases(t *testing.T) {
	sets := validSets()
	rapid.Check(t, func(t *rapid.T) {
		delay := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Map(rapid.Int64Range(1, int64(2*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }))
		caps := rapid.SampledFrom(sets).Draw(t, "capabilities")
		caps.Durable = true // what the walk's checks take for granted
		if caps.MaxDelay > 0 {
			caps.MaxDelay = delay.Draw(t, "MaxDelay") + 1
		}
		if caps.MaxHold > 0 {
			caps.MaxHold = delay.Draw(t, "MaxHold") + 1
		}
		route := rapid.Custom(func(t *rapid.T) core.Route {
			r := core.Route{
				State:    core.RouteState(rapid.IntRange(0, 2).Draw(t, "state")),
				Restarts: true,
				Own:      rapid.Bool().Draw(t, "own"),
				Caps: core.Publishing{
					Confirms: core.ConfirmStored,
					Retains:  core.Retention(rapid.IntRange(1, 2).Draw(t, "retains")),
					MaxDelay: delay.Draw(t, "destination delays"),
					Dedups:   rapid.Bool().Draw(t, "dedups"),
				},
			}
			return r
		})
		s := &situation{
			policy: core.Policy{
				MaxAttempts: rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32()).Draw(t, "cap"),
				DeadLetter:  rapid.Bool().Draw(t, "dead letter"),
				Backoff:     rapid.Bool().Draw(t, "backoff"),
				Elapsed:     rapid.Bool().Draw(t, "budget"),
			},
			c: core.Case{
				Source: caps, Retry: route.Draw(t, "retry"), Dead: deadRoute,
				Outcome: core.Outcome{
					Kind:  core.OutcomeKind(rapid.IntRange(0, int(core.OutcomeFailFast)).Draw(t, "kind")),
					Cause: core.Cause(rapid.IntRange(0, int(core.CauseReplyFailed)).Draw(t, "cause")),
					After: delay.Draw(t, "after"),
				},
				Floor:   delay.Draw(t, "floor"),
				Journal: rapid.Bool().Draw(t, "journal"),
				Full:    rapid.Bool().Draw(t, "full"),
				Spent:   rapid.Bool().Draw(t, "spent"),
			},
		}
		if caps.MaxHold > 0 {
			s.c.Held = time.Duration(rapid.Int64Range(0, int64(caps.MaxHold)-1).Draw(t, "held"))
		}
		if rapid.Bool().Draw(t, "gone") {
			s.c.Void = core.VoidGone
		}
		s.c.Attempt.Copies = rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(t, "copies")
		if caps.Counts == core.CountNative {
			s.c.Attempt.Native = rapid.Uint32().Draw(t, "native")
		}
		core.Decide(&s.policy, &s.c, &s.plan)
		s.capped = s.plan.Notes&core.NoteCap != 0
		for _, p := range properties {
			if p.onPlan != nil {
				if why := p.onPlan(s); why != "" {
					t.Fatalf("%s: %s\n%s", p.name, why, s)
				}
				continue
			}
			everyPath(&s.plan, func(path core.Path) {
				if why := p.onPath(s, path); why != "" {
					t.Fatalf("%s: %s\non the path %s\n%s", p.name, why, path, s)
				}
			})
		}
	})
}
