// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Inspect says what each subscription and destination can do, and refuses those
// that cannot work. The registrations of the last call say what connections
// Connect opens, and what arrives for them before they are subscribed is kept.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	e.readers = e.readers[:0:0]
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
	r, found := readRegistration(g)
	if len(found) == 0 {
		found = e.besides(&r)
	}
	if len(found) > 0 {
		return pluginapi.RegistrationReport{Findings: found}
	}
	e.readers = append(e.readers, r)
	return pluginapi.RegistrationReport{Profiles: r.profiles(*r.options.QoS, e.kept())}
}

// readRegistration reads a registration, with what is wrong with it by itself.
func readRegistration(g *pluginapi.Registration) (reader, []pluginapi.Finding) {
	var o settings.SubscribeOptions
	if err := g.Options.Bind(&o); err != nil {
		return reader{}, findingsOf(err)
	}
	var found []pluginapi.Finding
	add := func(option, message, fix string) {
		if message != "" {
			found = append(found, pluginapi.Finding{Option: option, Message: message, Fix: fix})
		}
	}
	message, fix := badName(g.Name, o.Filter)
	add("name", message, fix)
	if o.Group != "" {
		message, fix = badGroup(o.Group)
		add("group", message, fix)
		if o.NoLocal {
			add("no_local", fmt.Sprintf("is given for %s in the group %s, and a group leaves nothing out", shown(g.Name), shown(o.Group)),
				"leave out no_local, or the group")
		}
	}
	if why := badText(o.Connection); why != "" {
		add("connection", shown(o.Connection)+" "+why, "use letters and digits: it becomes a part of the client id")
	}
	return newReader(g, &o), found
}

// besides says what is wrong with a subscription beside those before it that
// share its connection.
func (e *endpoint) besides(r *reader) []pluginapi.Finding {
	for i := range e.readers {
		if o := &e.readers[i]; o.options.Connection == r.options.Connection {
			if found := beside(o, r); len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// beside says why two subscriptions cannot share a connection.
func beside(o, r *reader) []pluginapi.Finding {
	switch {
	case o.wire == r.wire && !o.alike(r):
		return []pluginapi.Finding{{
			Option: "name",
			Message: fmt.Sprintf("subscriptions %s and %s have the same filter with different options, and a connection subscribes to it once",
				o.shown(), r.shown()),
			Fix: "give both the same qos, retain_handling, no_local and retain_as_published, or one of them a connection of its own",
		}}
	case o.wire != r.wire && topic.Identifier(o.wire) == topic.Identifier(r.wire):
		return []pluginapi.Finding{{
			Option:  "name",
			Message: fmt.Sprintf("subscriptions %s and %s get the same subscription identifier, and what arrives could not be told apart", o.shown(), r.shown()),
			Fix:     "give one of them a connection of its own with the option connection",
		}}
	}
	return nil
}

// share says of each subscription which others use its connection: they share
// what it may have unsettled.
func (e *endpoint) share(reports []pluginapi.RegistrationReport) {
	for i := range e.readers {
		for k := range e.readers {
			if i != k && e.readers[i].options.Connection == e.readers[k].options.Connection {
				report := &reports[e.readers[i].id]
				report.Shares = append(report.Shares, e.readers[k].id)
			}
		}
	}
}

// inspectTarget says what a destination can do and who reads it.
func (e *endpoint) inspectTarget(t *pluginapi.Target) pluginapi.TargetReport {
	var report pluginapi.TargetReport
	var o settings.PublishOptions
	if err := t.Options.Bind(&o); err != nil {
		report.Findings = findingsOf(err)
	} else {
		report.Findings = findings(badPublishOptions(&o))
	}
	if message, fix := badTopic(t.Name); message != "" {
		report.Findings = append(report.Findings, pluginapi.Finding{Option: "name", Message: message, Fix: fix})
	}
	report.Publishing = e.publishing(core.RetainTransport)
	if len(report.Findings) > 0 {
		return report
	}
	lost := 0
	for i := range e.readers {
		r := &e.readers[i]
		if !slices.ContainsFunc(e.connections(t), func(over string) bool { return r.reads(t.Name, over) }) {
			continue
		}
		report.ReturnsTo = append(report.ReturnsTo, r.id)
		if !r.options.Filter {
			report.Exactly = append(report.Exactly, r.id)
		}
		if !e.kept() || *r.options.QoS == 0 {
			lost++
		}
	}
	if lost > 0 && lost == len(report.ReturnsTo) && !o.Retain {
		report.Publishing.Retains = core.RetainNothing
	}
	if *o.QoS == 0 {
		report.Publishing.Confirms = core.ConfirmHandedOver
	}
	return report
}

// connections are those that messages to a destination leave over: the endpoint's
// own, but for copies and dead letters, which leave over the connection of what
// they stem from.
func (e *endpoint) connections(t *pluginapi.Target) []string {
	if len(t.For) == 0 || t.Purpose != pluginapi.PurposeRetry && t.Purpose != pluginapi.PurposeDeadLetter {
		return []string{""}
	}
	var over []string
	for i := range e.readers {
		if slices.Contains(t.For, e.readers[i].id) {
			over = append(over, e.readers[i].options.Connection)
		}
	}
	return over
}

// badPublishOptions says what is wrong with the options of a message.
func badPublishOptions(o *settings.PublishOptions) []core.Diagnostic {
	var wrong diagnostics
	wrong.seconds("expiry", o.Expiry)
	wrong.text("content_type", o.ContentType)
	return wrong
}

// publishing is what every destination can do.
func (e *endpoint) publishing(r core.Retention) core.Publishing {
	return core.Publishing{
		Confirms: core.ConfirmStored, Retains: r, Headers: core.HeadersNativeText, Repeats: true,
		MaxBytes: min(e.settings.MaxPacketSize-packetRoom, MaxMessage), MaxHeaders: min(int(e.settings.MaxPacketSize/headerRoom), MaxHeaders),
	}
}

// findingsOf is why options cannot be read.
func findingsOf(err error) []pluginapi.Finding {
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || len(f.Diagnostics) == 0 {
		return []pluginapi.Finding{{Message: err.Error(), Fix: "see the documentation of the options"}}
	}
	return findings(f.Diagnostics)
}

func findings(wrong []core.Diagnostic) []pluginapi.Finding {
	var found []pluginapi.Finding
	for _, d := range wrong {
		found = append(found, pluginapi.Finding{Option: d.Path, Message: d.Message, Fix: d.Fix})
	}
	return found
}
