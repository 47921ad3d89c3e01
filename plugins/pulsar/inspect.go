// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// Inspect says what each subscription and destination can do, and refuses those
// that cannot work. The dead letters of the last call get their subscription when
// the endpoint connects.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	e.readers, e.dead = e.readers[:0:0], e.dead[:0:0]
	var in pluginapi.Inspection
	for i := range u.Registrations {
		in.Registrations = append(in.Registrations, e.inspectRegistration(&u.Registrations[i]))
	}
	e.share(in.Registrations)
	for i := range u.Destinations {
		in.Destinations = append(in.Destinations, e.inspectTarget(&u.Destinations[i]))
	}
	return in
}

// inspectRegistration says what a subscription can do, and keeps it in mind where
// nothing refuses it.
func (e *endpoint) inspectRegistration(g *pluginapi.Registration) pluginapi.RegistrationReport {
	r, found := e.readRegistration(g)
	if len(found) == 0 {
		found = r.declared(g)
	}
	if len(found) == 0 {
		found = e.beside(&r)
	}
	if len(found) > 0 {
		return pluginapi.RegistrationReport{Findings: found}
	}
	e.readers = append(e.readers, r)
	return pluginapi.RegistrationReport{Profiles: []core.Capabilities{pluginapi.HeldCapabilities(r.source())}}
}

// declared says what of a policy cannot work (reference 2.6). A cap, of attempts or
// of time, and a dead letter are declared together, where the broker counts; nothing
// is handled again by copies.
func (r *reader) declared(g *pluginapi.Registration) []pluginapi.Finding {
	var found findings
	about := fmt.Sprintf("the subscription %s to %s", shown(r.subscription), shown(r.name))
	capped := g.Attempts > 0 || g.Elapsed > 0
	if g.RetryTo != "" {
		found.add("RetryTo", about+" gets its own messages again from the broker, so that no copy is made below the cap",
			"leave RetryTo out, and declare MaxAttempts and DeadLetterTo")
	}
	switch {
	case !counts(r.options.Type) && (capped || g.DeadLetter != ""):
		found.add("type", fmt.Sprintf("%s is %s, and the broker counts no deliveries of that type: MaxAttempts, MaxElapsed and DeadLetterTo cannot be applied", about, r.options.Type),
			"use the type shared or key_shared, or leave MaxAttempts, MaxElapsed and DeadLetterTo out")
	case capped && g.DeadLetter == "":
		found.add("DeadLetterTo", about+" has a cap and no dead letter, so that a message would be dropped at the cap",
			"declare DeadLetterTo beside it, or leave the cap out")
	case g.DeadLetter != "" && !capped:
		found.add("MaxAttempts", about+" has a dead letter and no cap, so that the first failure would be dead",
			"declare MaxAttempts or MaxElapsed beside DeadLetterTo")
	}
	if limit := time.Duration(r.options.AckTimeout); limit > 0 && g.Backoff >= limit {
		found.add("ack_timeout", fmt.Sprintf("%s has a Backoff of up to %v, and after %v the message comes again by itself", about, g.Backoff, limit),
			"raise ack_timeout above the longest delay of Backoff, or shorten Backoff")
	}
	return found
}

// beside says why a subscription cannot be opened beside those before it: the
// broker takes a consumer of the same subscription with another type for an error,
// and one more of an exclusive subscription waits for ever.
func (e *endpoint) beside(r *reader) []pluginapi.Finding {
	var found findings
	for i := range e.readers {
		o := &e.readers[i]
		if o.subscription != r.subscription || !o.meets(r) {
			continue
		}
		switch both := fmt.Sprintf("%s and %s have topics in common, and both read them as the subscription %s", shown(o.name), shown(r.name), shown(r.subscription)); {
		case o.options.Type != r.options.Type:
			found.add("type", fmt.Sprintf("%s, one %s, one %s", both, o.options.Type, r.options.Type),
				"give both the same type, or one of them another subscription")
		case r.options.Type == settings.TypeExclusive:
			found.add("type", both+", which has one consumer, since it is exclusive", "give one of them another subscription, or another type to both")
		default:
			continue
		}
		return found
	}
	return nil
}

// meets reports whether two readers are known to have a topic in common.
func (r *reader) meets(o *reader) bool {
	switch {
	case r.pattern != nil && o.pattern != nil:
		return r.pattern.String() == o.pattern.String()
	case r.pattern != nil:
		return slices.ContainsFunc(o.topics, r.reads)
	}
	return slices.ContainsFunc(r.topics, o.reads)
}

// share says of each subscription which others of this endpoint have a part of its
// messages.
func (e *endpoint) share(reports []pluginapi.RegistrationReport) {
	for i := range e.readers {
		for k := range e.readers {
			a, b := &e.readers[i], &e.readers[k]
			if i != k && a.subscription == b.subscription && a.meets(b) {
				report := &reports[a.id]
				report.Shares = append(report.Shares, b.id)
			}
		}
	}
}

// inspectTarget says what a destination can do and who reads it.
func (e *endpoint) inspectTarget(t *pluginapi.Target) pluginapi.TargetReport {
	var found findings
	var o settings.PublishOptions
	if err := t.Options.Bind(&o); err != nil {
		found = findingsOf(err)
	} else {
		found = refusals(checkPublish(&o, &e.settings))
	}
	n, err := topic.Parse(t.Name)
	if err != nil {
		found.fault("name", err)
	}
	report := pluginapi.TargetReport{Publishing: publishing(e.settings.MaxMessageSize), Findings: found}
	if len(found) > 0 {
		return report
	}
	for i := range e.readers {
		r := &e.readers[i]
		if !r.reads(n) {
			continue
		}
		report.ReturnsTo = append(report.ReturnsTo, r.id)
		if r.pattern == nil {
			report.Exactly = append(report.Exactly, r.id)
		}
		if !counts(r.options.Type) {
			report.Publishing.MaxDelay = 0 // the broker delays for shared and key_shared alone
		}
	}
	if t.Purpose == pluginapi.PurposeDeadLetter {
		e.inspectDead(n, &report)
	}
	return report
}

// inspectDead keeps a dead letter in mind, and warns of one that nobody keeps.
func (e *endpoint) inspectDead(n topic.Name, report *pluginapi.TargetReport) {
	switch {
	case len(report.Exactly) > 0: // they are read here, by a subscription that there is before anything is dead
	case *e.settings.DeadLetterSubscription != "":
		if !slices.Contains(e.dead, n) {
			e.dead = append(e.dead, n)
		}
	default:
		report.Findings = append(report.Findings, pluginapi.Finding{
			Warning: true, Option: "name",
			Message: fmt.Sprintf("the dead letter %s keeps nothing while it has no subscription, and dead_letter_subscription is empty", n),
			Fix:     "set dead_letter_subscription, or see to it that the topic has a subscription",
		})
	}
}
