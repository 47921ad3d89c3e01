// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// computedName stands for the destination of RetryToFunc where a plan is
// printed.
const computedName = "fn"

// defaultFloor is what the floor of a plain requeue grows to without the rule
// Floor.
const defaultFloor = time.Second

// redirects reports whether copies do not go to the own address.
func (s *ruleSet) redirects() bool { return !s.retryTo.IsZero() || s.retryFunc != nil }

// check reads every subscription's policy and routes out of what was declared
// and inspected, and returns what is wrong with them. known is what was found
// before: a rule that is found wrong already is not found wrong again.
func (r *run) check(known []Finding) []Finding {
	var found []Finding
	for _, s := range r.subs {
		if !s.on.inspected || !s.route() {
			continue // its endpoint, or that of a destination, did not come so far
		}
		found = append(found, s.checkPolicy(s.profiles, append(known[:len(known):len(known)], found...))...)
	}
	return slices.Concat(found, r.checkDeadLetters(), r.checkForwards(), r.checkCounts(), r.checkReplies())
}

// route sets policy, declaration and routes; false where a destination's
// endpoint did not answer.
func (s *subscribed) route() bool {
	rules := s.rules()
	_, floored := rules.given["Floor"]
	floor := rules.floor
	if !floored {
		floor = defaultFloor
	}
	_, capped := rules.given["MaxAttempts"]
	s.policy = core.Policy{
		MaxAttempts: rules.maxAttempts,
		DeadLetter:  !rules.deadLetter.IsZero(),
		RetryTo:     rules.redirects(),
		Backoff:     rules.backoff.given(),
		Elapsed:     rules.maxElapsed > 0,
	}
	s.declared = core.Declared{
		Cap:            capped,
		RetryTo:        rules.redirects(),
		DeadLetter:     s.policy.DeadLetter,
		LongestBackoff: rules.backoff.longest,
		MaxElapsed:     rules.maxElapsed,
		Panic:          rules.panics.declared(),
		Undecodable:    rules.undecodable.declared(),
		Errors:         rules.errorClasses(),
		Floor:          floor,
		Journal:        s.on.run.opts.journal != nil,
		Workers:        rules.workers,
		ByKey:          rules.keyed(),
		Batch:          s.sub.handled.most,
	}
	if !s.sub.handled.idle { // else nobody says it
		s.declared.Snooze = core.Snooze{Times: rules.snoozes, Total: rules.snoozedIn}
	}
	known := true
	to := func(d core.Destination, p transportpb.Purpose) core.Route {
		route, ok := s.routeTo(d, p)
		known = known && ok
		return route
	}
	switch own := s.own(); {
	case !rules.retryTo.IsZero():
		s.retry = to(s.resolve(rules.retryTo), transportpb.Purpose_PURPOSE_RETRY)
	case rules.retryFunc != nil:
		s.retry = core.Route{
			To:    core.Destination{Endpoint: s.on.endpoint.name, Name: computedName},
			Caps:  convert.ToPublishing(s.on.spec.GetPublishing()),
			State: core.RouteOpen, Restarts: s.on.restarts(), Own: true,
		}
	case !own.IsZero():
		s.retry = to(own, transportpb.Purpose_PURPOSE_RETRY)
	}
	for _, d := range rules.publishes {
		s.declared.Publishes = append(s.declared.Publishes, to(s.resolve(d), transportpb.Purpose_PURPOSE_APPLICATION))
	}
	if !rules.forward.IsZero() {
		s.declared.Forward = to(s.resolve(rules.forward), transportpb.Purpose_PURPOSE_APPLICATION)
	}
	if s.sub.handled.as == "HandleReply" {
		on := s.on
		if rules.replyOn != nil && s.on.run.byName[rules.replyOn.name] != nil { // else it is found already
			on = s.on.run.byName[rules.replyOn.name]
		}
		s.declared.Reply = core.Route{ // where each message says
			Caps: convert.ToPublishing(on.spec.GetPublishing()), State: core.RouteOpen, Restarts: on.restarts(), Own: on == s.on,
		}
		if !rules.replyTo.IsZero() {
			s.declared.Reply = to(s.resolve(rules.replyTo), transportpb.Purpose_PURPOSE_REPLY)
		}
	}
	if !rules.deadLetter.IsZero() {
		s.dead = to(s.resolve(rules.deadLetter), transportpb.Purpose_PURPOSE_DEAD_LETTER)
		s.causes = rules.causes || s.dead.Caps.Headers == core.HeadersNativeText || s.dead.Caps.Headers == core.HeadersNativeBytes
	}
	return known
}

// routeTo returns the route to a destination, false where nothing is known of
// it. One that its transport refused is open here: it is found already.
func (s *subscribed) routeTo(d core.Destination, p transportpb.Purpose) (core.Route, bool) {
	t := s.on.run.target(d, p)
	if t == nil {
		return core.Route{}, false
	}
	a := s.on.run.byName[d.Endpoint]
	return core.Route{
		To: d, Caps: convert.ToPublishing(t.GetPublishing()), State: core.RouteOpen,
		Restarts: a.restarts(), Own: a == s.on,
	}, true
}

// checkPolicy asks the engine what is wrong with the declaration on a source
// with these profiles.
func (s *subscribed) checkPolicy(profiles []core.Capabilities, known []Finding) []Finding {
	if len(profiles) == 0 && s.refused {
		return nil
	}
	if len(profiles) == 0 {
		f := s.at()
		f.Message, f.Fix = "the transport does not say what its deliveries can do", "report it to the transport's author"
		f.Places = places(s.sub.place)
		return []Finding{f}
	}
	retry := s.retry
	if !s.rules().redirects() && !slices.ContainsFunc(profiles, func(c core.Capabilities) bool { return c.Address != "" }) {
		retry = core.Route{} // an own address that Inspect promised is not there any more
	}
	var found []Finding
	for _, f := range slices.Concat(s.policyFindings(profiles, retry), s.holdFindings(profiles),
		s.waitFindings(profiles), s.reactionFindings(profiles)) {
		if f.Places == nil {
			f.Places = places(s.placeOf(f.Option))
		}
		if !spokenOf(known, f, s.rules().defaulted[f.Option]) {
			found = append(found, f)
		}
	}
	return found
}

// policyFindings are what the engine finds wrong.
func (s *subscribed) policyFindings(profiles []core.Capabilities, retry core.Route) (found []Finding) {
	for _, c := range core.Check(s.policy, profiles, retry, s.dead, s.declared) {
		f := s.at()
		f.Option, f.Message, f.Fix, f.Warning = c.Option, c.Message, c.Fix, c.Warning
		found = append(found, f)
	}
	return found
}

// placeOf returns where a rule was given, else where the subscription was.
func (s *subscribed) placeOf(option string) place {
	if p, ok := s.rules().given[option]; ok {
		return p
	}
	return s.sub.handled.place
}

// spokenOf reports whether a refusal of the same rule is known, or, of a default,
// the same finding: that one is told once, whatever subscriptions it is about.
func spokenOf(known []Finding, f Finding, defaulted bool) bool {
	return slices.ContainsFunc(known, func(k Finding) bool {
		if k.Option != f.Option {
			return false
		}
		own := !k.Warning && k.Endpoint == f.Endpoint && k.Subscription == f.Subscription
		return own || defaulted && (!k.Warning || f.Warning) && slices.Equal(k.Places, f.Places)
	})
}
