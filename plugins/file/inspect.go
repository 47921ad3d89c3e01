// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// Inspect says what each subscription and destination can do, and refuses names
// and options that cannot work.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	e.usage = u
	var in pluginapi.Inspection
	taken := make(map[string]bool)
	for i := range u.Registrations {
		in.Registrations = append(in.Registrations, inspectRegistration(&u.Registrations[i], taken))
	}
	for i := range u.Destinations {
		in.Destinations = append(in.Destinations, e.inspectTarget(&u.Destinations[i], u.Registrations))
	}
	return in
}

// inspectRegistration says what one subscription can do. taken holds the
// positions of those before it.
func inspectRegistration(r *pluginapi.Registration, taken map[string]bool) pluginapi.RegistrationReport {
	var report pluginapi.RegistrationReport
	add := func(option, message, fix string) {
		report.Findings = append(report.Findings, pluginapi.Finding{Option: option, Message: message, Fix: fix})
	}
	if message, fix := badPattern(r.Name); message != "" {
		add("name", message, fix)
	}
	var o settings.Subscription
	if err := r.Options.Bind(&o); err != nil {
		var f *core.Fault
		if !errors.As(err, &f) {
			f = &core.Fault{Diagnostics: []core.Diagnostic{{Message: err.Error()}}}
		}
		for _, d := range f.Diagnostics {
			add(d.Path, d.Message, d.Fix)
		}
	}
	if len(report.Findings) > 0 {
		return report
	}
	if o.Start.Kind() == settings.StartSequence && !exact(r.Name) {
		add("start", "a sequence counts the records of one key, and "+shown(r.Name)+" reads several",
			"start at a timestamp, or subscribe to one key")
	}
	switch position := o.Group + "/" + r.Name; {
	case o.Group == "":
	case badGroup(o.Group) != "":
		add("group", badGroup(o.Group), groupFix)
	case taken[position]:
		add("group", fmt.Sprintf("another subscription here reads %s in the group %s: one reader has a position at a time", r.Name, o.Group),
			"give one of them another group, or handle its messages in one subscription")
	default:
		taken[position] = true
	}
	if o.Replay && o.Group == "" && o.Start.Kind() == settings.StartEnd {
		report.Findings = append(report.Findings, pluginapi.Finding{
			Warning: true, Option: "start",
			Message: "a replay that starts at the end reads nothing",
			Fix:     "start it elsewhere, or leave replay out to read what comes",
		})
	}
	if grows(r, &o) {
		report.Findings = append(report.Findings, pluginapi.Finding{
			Warning: true, Option: "replay",
			Message: "a message that fails is appended as a copy, which the next replay reads beside the message itself",
			Fix:     "give it a group, or send the copies elsewhere with RetryTo",
		})
	}
	report.Profiles = []core.Capabilities{pluginapi.HeldCapabilities(capabilitiesOf(r.Name, &o))}
	return report
}

// grows reports whether each replay of what fails makes the file longer by copies
// under the key that it reads.
func grows(r *pluginapi.Registration, o *settings.Subscription) bool {
	copies := r.Attempts > 1 || r.Attempts == 0 && (r.Elapsed > 0 || r.Backoff > 0 && r.DeadLetter == "")
	return o.Replay && o.Group == "" && r.RetryTo == "" && copies
}

// groupFix is what to do about a bad group name.
const groupFix = "use up to 249 letters, digits, dots, underscores and hyphens, not dots alone"

// badGroup says why a group cannot have a name, "" when it can: it is the name
// of a folder.
func badGroup(name string) string {
	if message, _ := badKey(name); message != "" || strings.Trim(name, ".") == "" {
		return shown(name) + " cannot be the name of a group"
	}
	return ""
}

// inspectTarget says what one destination can do and which subscriptions read
// it. A replay does not in this run; the next one does.
func (e *endpoint) inspectTarget(t *pluginapi.Target, rs []pluginapi.Registration) pluginapi.TargetReport {
	report := pluginapi.TargetReport{Publishing: publishing(e.settings.Fsync)}
	if message, fix := badKey(t.Name); message != "" {
		report.Findings = []pluginapi.Finding{{Option: "name", Message: message, Fix: fix}}
		return report
	}
	for i := range rs {
		r := &rs[i]
		if message, _ := badPattern(r.Name); message != "" || !reads(r.Name, t.Name) {
			continue
		}
		report.ReturnsTo = append(report.ReturnsTo, r.ID)
		if exact(r.Name) {
			report.Exactly = append(report.Exactly, r.ID)
		}
	}
	return report
}

// capabilitiesOf are those of a subscription by its name and options.
func capabilitiesOf(name string, o *settings.Subscription) core.Capabilities {
	address := ""
	if exact(name) {
		address = name
	}
	return capabilities(address, o.Group != "")
}

// capabilities are those of a subscription with an address, as its source can do
// by itself: with a group what is handed back comes again at once.
func capabilities(address string, group bool) core.Capabilities {
	if !group {
		return core.Capabilities{Address: address, Order: core.OrderTotal}
	}
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueNow, Counts: core.CountNative, Address: address,
		Unsettled: core.UnsettledOnResume, Durable: true, Order: core.OrderTotal,
	}
}

// publishing is what every destination can do.
func publishing(fsync string) core.Publishing {
	p := core.Publishing{
		Confirms: core.ConfirmHandedOver, Retains: core.RetainTransport, Headers: core.HeadersEnveloped, Repeats: true,
		MaxBytes: int64(MaxPublish), MaxHeaders: MaxPublishHeaders,
	}
	if fsync == settings.FsyncEach {
		p.Confirms = core.ConfirmStored
	}
	return p
}
