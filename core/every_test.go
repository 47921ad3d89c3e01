// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"iter"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/rows"
)

// validSets are all valid capability sets, the limits given or not.
func validSets() []core.Capabilities {
	var out []core.Capabilities
	for c := range everySet() {
		if c.Valid() == nil {
			out = append(out, c)
		}
	}
	return out
}

// everySet is every combination of modes, valid or not.
func everySet() iter.Seq[core.Capabilities] {
	return func(yield func(core.Capabilities) bool) {
		for i := range 3 * 3 * 3 * 2 * 4 * 2 * 2 * 2 {
			take := func(n int) int {
				v := i % n
				i /= n
				return v
			}
			c := core.Capabilities{
				Ack:       core.AckMode(take(3)),
				Requeue:   core.RequeueMode(take(3)),
				Reject:    core.RejectMode(take(3)),
				Counts:    core.CountMode(take(2)),
				Unsettled: core.Unsettled(take(4)),
				Extend:    take(2) == 1,
				Durable:   true,
			}
			if take(2) == 1 {
				c.MaxDelay = 10 * time.Second
			}
			if take(2) == 1 {
				c.MaxHold = 30 * time.Second
			}
			if !yield(c) {
				return
			}
		}
	}
}

// situation is one decision of the walk.
type situation struct {
	policy core.Policy
	c      core.Case
	plan   core.Plan
	capped bool // the cap is reached, or passed
}

func (s *situation) String() string {
	return fmt.Sprintf("policy %+v\ncase %+v\nplan %s\nsteps %+v", s.policy, s.c, &s.plan, s.plan.Steps[:s.plan.N])
}

var (
	// retryRoutes are: stored by a transport, none, refused, read by this process
	// alone, delaying by itself.
	retryRoutes = []core.Route{
		{State: core.RouteOpen, Caps: rows.Stored(), Restarts: true},
		{},
		{State: core.RouteRefused},
		{State: core.RouteOpen, Caps: core.Publishing{Confirms: core.ConfirmHandedOver, Retains: core.RetainProcess}, Own: true, Restarts: true},
		{State: core.RouteOpen, Caps: core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxDelay: time.Minute, Dedups: true}},
	}
	deadRoute = core.Route{State: core.RouteOpen, Caps: rows.Stored(), Restarts: true}
	outcomes  = []core.Outcome{
		{Kind: core.OutcomeLeave},
		{Kind: core.OutcomeAck},
		{Kind: core.OutcomeDrop},
		{Kind: core.OutcomeFailFast, Cause: core.CausePanic},
		{Kind: core.OutcomeDrop, Cause: core.CauseUndecodable},
		{Kind: core.OutcomeDeadLetter, Cause: core.CauseError},
		{Kind: core.OutcomeRetry, Cause: core.CauseError},
		{Kind: core.OutcomeRetry, Cause: core.CauseUndecodable},
		{Kind: core.OutcomeRetryAfter},
		{Kind: core.OutcomeRetryAfter, After: 5 * time.Second, Cause: core.CauseError},
		{Kind: core.OutcomeRetryAfter, After: 20 * time.Second, Cause: core.CauseUndecodable},
		{Kind: core.OutcomeRetryAfter, After: time.Hour},
		{Kind: core.OutcomeRetryAfter, After: time.Hour, Cause: core.CausePanic},
		{Kind: core.OutcomeRetryAfter, After: time.Hour, Cause: core.CauseUndecodable},
	}
)

// everySituation decides every case: all valid sets, policies, outcomes,
// attempts, routes, voids, with and without a journal and room. Sets are never
// left out, of the rest each step-th case is taken.
func everySituation(step int) iter.Seq[*situation] {
	sets := validSets()
	return func(yield func(*situation) bool) {
		n := 0
		take := func() bool { n++; return n%step == 0 }
		var s situation
		for _, caps := range sets {
			for _, p := range everyPolicy() {
				for _, o := range outcomes {
					for c := range everyCase(caps, p, o, take) {
						s.policy, s.c = p, c
						core.Decide(&s.policy, &s.c, &s.plan)
						s.capped = s.plan.Notes&core.NoteCap != 0
						if !yield(&s) {
							return
						}
					}
				}
			}
		}
	}
}

func everyPolicy() []core.Policy {
	var out []core.Policy
	for _, attempts := range []uint32{0, 1, 3} {
		for _, dead := range []bool{false, true} {
			for _, backoff := range []bool{false, true} {
				out = append(out, core.Policy{MaxAttempts: attempts, DeadLetter: dead, Backoff: backoff})
				if attempts != 1 {
					out = append(out, core.Policy{MaxAttempts: attempts, DeadLetter: dead, Backoff: backoff, Elapsed: true})
				}
			}
		}
	}
	return out
}

// everyCase is what can differ between two deliveries of one registration, as
// far as take wants it.
func everyCase(caps core.Capabilities, p core.Policy, o core.Outcome, take func() bool) iter.Seq[core.Case] {
	return func(yield func(core.Case) bool) {
		copies := o.Kind == core.OutcomeRetry || o.Kind == core.OutcomeRetryAfter || o.Kind == core.OutcomeDeadLetter
		for i, r := range retryRoutes {
			if i > 0 && !copies {
				continue
			}
			for attempt := uint32(1); attempt <= 4; attempt++ {
				for bits := range 32 {
					full, spent := bits&2 != 0, bits&16 != 0
					if full && (!copies || o.After == 0) || spent && (!copies || attempt > 1) || !take() {
						continue
					}
					c := core.Case{Source: caps, Retry: r, Dead: deadRoute, Outcome: o}
					c.Journal, c.Full, c.Spent = bits&1 != 0, full, spent
					if bits&4 != 0 {
						c.Void = core.VoidGone
					}
					if bits&8 != 0 {
						// Late, and due for a floor.
						c.Held, c.Floor = 29*time.Second+500*time.Millisecond, time.Second
					}
					if caps.Counts == core.CountNative {
						c.Attempt.Native = attempt
					} else {
						c.Attempt.Copies = uint64(attempt - 1)
					}
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

// everyPath walks the plan with every result that each step can have and calls
// yield with each whole walk. An unknown receipt is given once in a walk.
func everyPath(plan *core.Plan, yield func(path core.Path)) {
	var path [core.MaxSteps + 4]core.Done
	walk(plan.Start(), core.ResultDone, path[:0], false, yield)
}

func walk(c core.Cursor, r core.Result, path core.Path, unknown bool, yield func(core.Path)) {
	s, ok := c.Next(r)
	if !ok {
		yield(path)
		return
	}
	for _, r := range resultsOf(s.Do) {
		if r == core.ResultUnknown && unknown {
			continue
		}
		walk(c, r, append(path, core.Done{Step: s, Result: r}), unknown || r == core.ResultUnknown, yield)
	}
}

var (
	onlyDone    = []core.Result{core.ResultDone}
	ofVerdicts  = []core.Result{core.ResultDone, core.ResultFailed, core.ResultStaleReturns, core.ResultStaleGone}
	ofHolds     = []core.Result{core.ResultDone, core.ResultStaleReturns, core.ResultCut}
	ofStores    = []core.Result{core.ResultDone, core.ResultFailed, core.ResultStaleReturns, core.ResultCut}
	ofPublishes = []core.Result{core.ResultDone, core.ResultTransient, core.ResultUnknown, core.ResultStaleReturns, core.ResultCut}
	ofLater     = []core.Result{core.ResultDone, core.ResultRefused, core.ResultUnknown, core.ResultCut}
	ofParks     = []core.Result{core.ResultDone, core.ResultFailed}
)

func resultsOf(a core.Action) []core.Result {
	switch a {
	case core.ActAck, core.ActReject, core.ActRequeue:
		return ofVerdicts
	case core.ActHold:
		return ofHolds
	case core.ActStore:
		return ofStores
	case core.ActPublish:
		return ofPublishes
	case core.ActPublishLater:
		return ofLater
	case core.ActPark, core.ActForget:
		return ofParks
	default:
		return onlyDone
	}
}
