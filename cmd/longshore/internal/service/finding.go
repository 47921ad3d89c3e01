// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// optionCommand is the option of findings about a command.
const optionCommand = "exec.command"

// What the paths of a transport's settings and options begin with.
const (
	settingsField = "settings."
	optionsField  = "options."
)

// exitStatus is how a host writes the rule of an exit status.
var exitStatus = regexp.MustCompile(`error Is\((exit status [0-9]+)\)`)

// field returns the field of the form behind an option that a host names; paths
// such as settings.loopback are the form's own.
func field(option string) string {
	switch option {
	case "Endpoint", "Handle":
		return ""
	case "Subscription":
		return "name"
	case "Forward":
		return "forward"
	case "Plugin":
		return "transport"
	}
	if name, ok := strings.CutPrefix(option, "Plugin."); ok {
		if name == "Name" {
			return "transport"
		}
		return strings.ToLower(name)
	}
	// What a transport says of a field when it connects or subscribes.
	if name, ok := strings.CutPrefix(option, "Connect."); ok {
		return settingsField + name
	}
	if name, ok := strings.CutPrefix(option, "Subscription."); ok {
		if strings.HasPrefix(name, settingsField) {
			return name // of the endpoint, met when a subscription was opened
		}
		return optionsField + name
	}
	return inForm(option)
}

// inForm puts the form's names for those of the Go API into a text: the advice
// is for somebody who writes YAML.
func inForm(text string) string {
	return strings.NewReplacer(
		"RetryTo or RetryToFunc", "retry_to",
		"give WithJournal, or WithDrainLimit above", "run with --drain-limit above",
		"return Snooze instead", "declare snooze and exit with 69",
		"AsDeadLetter", "dead_letter",
		"AsDrop", "drop",
		"RetryTo", "retry_to",
		"MaxAttempts", "max_attempts",
		"DeadLetterTo", "dead_letter",
		"OnUndecodable", "on_undecodable",
		"Backoff", "backoff",
		"Floor(0)", "floor: 0s",
		"Floor", "floor",
		"MaxElapsed", "max_elapsed",
		"SnoozeLimit", "snooze",
		"Workers", "workers",
		"ByKeyFunc", "by_key",
		"ByKey", "by_key",
		"RateLimit", "rate_limit",
		"CircuitBreaker", "circuit_breaker",
		"NoDefaults", "no_defaults",
		"Window", "window",
		"OnError", "exec.on_exit",
		"set Plugin.Stdio to &host.Stdio{}", "set stdio: true",
		"Plugin.Stdio", "stdio",
	).Replace(text)
}

// told is inForm for what is said of an option. Exit statuses mean something
// where the file does not say so.
func told(option, text string) string {
	text = inForm(text)
	if option != inForm("OnError") {
		return text
	}
	return strings.NewReplacer(
		"dead_letter drops the message", "an exit status that asks for the dead letter, as 70 does, drops the message",
		"or say drop", "or say on_exit: {70: drop}",
	).Replace(text)
}

// Describe writes a finding for the reader of a service file: with its line, and
// with the names that the file uses.
func Describe(f *config.File, fd host.Finding) string {
	fd.Option = field(fd.Option)
	if own := subscription(f, fd); own != "" && !f.Has(own+"."+fd.Option) && f.Has(own+"."+optionsField+fd.Option) {
		fd.Option = optionsField + fd.Option // as the transport's inspection names it
	}
	at := f.At(path(f, fd))
	fd.Message, fd.Fix, fd.Places = told(fd.Option, fd.Message), told(fd.Option, fd.Fix), nil // the places are in this program
	return fmt.Sprintf("%s:%d:%d: %s", f.Name(), at.Line, at.Column, fd)
}

// Tables puts the form's names into tables: into their findings, and into the
// rows of exit statuses.
func Tables(tables []core.Table) []core.Table {
	out := slices.Clone(tables)
	for i := range out {
		out[i].Profiles = slices.Clone(out[i].Profiles)
		for k := range out[i].Profiles {
			p := &out[i].Profiles[k]
			p.Rows = slices.Clone(p.Rows)
			for r := range p.Rows {
				p.Rows[r].Outcome = exitStatus.ReplaceAllString(p.Rows[r].Outcome, "$1")
			}
		}
		out[i].Findings = slices.Clone(out[i].Findings)
		for k := range out[i].Findings {
			fd := &out[i].Findings[k]
			fd.Option = field(fd.Option)
			fd.Message, fd.Fix = told(fd.Option, fd.Message), told(fd.Option, fd.Fix)
		}
	}
	return out
}

// path returns the field path of what a finding is about: the subscription's own
// field, or that of the defaults that it has it from.
func path(f *config.File, fd host.Finding) string {
	defaults := []string{"defaults"}
	base := ""
	if fd.Endpoint != "" {
		base = "endpoints." + fd.Endpoint
		defaults = []string{base + ".defaults", "defaults"}
	}
	if !strings.HasPrefix(fd.Option, settingsField) {
		base = cmp.Or(subscription(f, fd), base)
	}
	if fd.Option == "" {
		return base
	}
	own := strings.TrimPrefix(base+"."+fd.Option, ".")
	for _, at := range append([]string{own}, joined(defaults, fd.Option)...) {
		if f.Has(at) {
			return at
		}
	}
	return own
}

// subscription returns the path of the subscription that a finding is about, ""
// where it is about none. Of two alike the second one is too many.
func subscription(f *config.File, fd host.Finding) (path string) {
	for i, s := range f.Subscriptions {
		if s.From == fd.Endpoint && s.Name == fd.Subscription {
			path = fmt.Sprintf("subscriptions[%d]", i)
		}
	}
	return path
}

// joined appends a field to each path.
func joined(paths []string, field string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p + "." + field
	}
	return out
}
