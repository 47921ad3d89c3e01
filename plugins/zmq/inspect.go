// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Inspect says what the subscription and each destination can do, and refuses
// those that cannot work. The registrations of the last call say what sockets
// Connect opens.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	e.readers = slices.Clone(u.Registrations)
	var in pluginapi.Inspection
	for i := range u.Registrations {
		in.Registrations = append(in.Registrations, e.inspectRegistration(&u.Registrations[i], &u.Registrations[0]))
	}
	for i := range u.Destinations {
		in.Destinations = append(in.Destinations, e.inspectTarget(&u.Destinations[i], u.Registrations))
	}
	return in
}

// inspectRegistration says what a subscription can do. first is the one that has
// the endpoint.
func (e *endpoint) inspectRegistration(r, first *pluginapi.Registration) pluginapi.RegistrationReport {
	report := pluginapi.RegistrationReport{Profiles: []core.Capabilities{e.capabilities(r.Name)}}
	add := func(option, message, fix string) {
		report.Findings = append(report.Findings, pluginapi.Finding{Option: option, Message: message, Fix: fix})
	}
	if bad := badName(r.Name); bad != nil {
		add("name", bad.message, bad.fix)
	}
	if r.ID != first.ID {
		add("name", fmt.Sprintf("subscription %s reads endpoint %s already, which %s, and %s would take its messages",
			shown(first.Name), e.name, e.does(), shown(r.Name)),
			"attach another endpoint for it, or handle its messages in one subscription")
	}
	if r.Batch && e.settings.Pattern == settings.PatternRPC {
		add("HandleBatch", fmt.Sprintf("requests to %s are answered one by one, and a batch would keep those who ask waiting", shown(r.Name)),
			"handle them with Handle or HandleReply")
	}
	if prefix, ok := strings.CutSuffix(r.Name, "*"); ok && e.settings.Pattern == settings.PatternFanOut {
		fix := "write " + shown(prefix) + ": the name of a subscription is a prefix as it stands"
		if prefix == "" {
			fix = "give a prefix of the names that are published; there is none for all of them"
		}
		report.Findings = append(report.Findings, pluginapi.Finding{
			Warning: true, Option: "name", Fix: fix,
			Message: fmt.Sprintf("%s gets only names that begin with just these characters, the * among them", shown(r.Name)),
		})
	}
	return report
}

// capabilities are those of a subscription: nothing is acknowledged. One that
// binds a queue or a fan-out takes copies under its own name. Only what comes
// over a single connection has an order.
func (e *endpoint) capabilities(name string) core.Capabilities {
	var c core.Capabilities
	if e.bind != nil && e.settings.Pattern != settings.PatternRPC {
		c.Address = name
	}
	if len(e.connect) == 1 {
		c.Order = core.OrderTotal
	}
	return c
}

// inspectTarget says what a destination can do and who reads it.
func (e *endpoint) inspectTarget(t *pluginapi.Target, readers []pluginapi.Registration) pluginapi.TargetReport {
	if len(readers) == 0 {
		return e.inspectOutside(t)
	}
	var report pluginapi.TargetReport
	var no *refusal
	open := false
	for i := range readers {
		r := &readers[i]
		w, refused := e.way(r.Name, t.Name)
		if refused != nil {
			no = cmp.Or(no, refused)
			continue
		}
		open, report.Publishing = true, e.publishing(w)
		if w == wayOwn {
			report.ReturnsTo = append(report.ReturnsTo, r.ID)
			if t.Name == r.Name {
				report.Exactly = append(report.Exactly, r.ID)
			}
		}
	}
	if !open {
		report.Publishing = e.publishing(wayPeers)
		report.Findings = []pluginapi.Finding{no.finding()}
	}
	return report
}

// inspectOutside says what a destination can do where the endpoint has no
// subscription. An endpoint for requests takes nothing else; but a host asks about
// requests and publishes of an application alike.
func (e *endpoint) inspectOutside(t *pluginapi.Target) pluginapi.TargetReport {
	w, refused := e.way("", t.Name)
	report := pluginapi.TargetReport{Publishing: e.publishing(w)}
	switch {
	case refused != nil:
		report.Findings = []pluginapi.Finding{refused.finding()}
	case w == wayRequest:
		f := requestsOnly(t.Name).finding()
		f.Warning = t.Purpose == pluginapi.PurposeApplication
		report.Findings = []pluginapi.Finding{f}
	}
	return report
}

// requestsOnly is the refusal of a publish where only requests are sent.
func requestsOnly(name string) *refusal {
	return &refusal{
		shown(name) + " can be sent requests only: over rpc nothing else is published",
		"use Request, or a queue endpoint",
	}
}

func (r *refusal) finding() pluginapi.Finding {
	return pluginapi.Finding{Option: "name", Message: r.message, Fix: r.fix}
}
