// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// prepare starts, describes, configures and inspects all plugins and checks
// everything that can be checked without a connection. It returns what it found,
// warnings included. Started plugins are in the endpoints' first, whatever it
// returns.
func (r *run) prepare(ctx context.Context) []Finding {
	found := append([]Finding(nil), r.host.found...)
	if len(r.host.endpoints) == 0 && len(found) == 0 {
		return []Finding{{Option: "Endpoint", Message: "nothing is attached", Fix: "call Host.Endpoint before Run"}}
	}
	found = append(found, r.host.declare()...)
	found = append(found, r.assemble()...)
	found = append(found, r.each(func(a *attached) []Finding { return a.begin(ctx) })...)
	found = append(found, r.usages()...)
	said := r.each(func(a *attached) []Finding { return a.examine(ctx) })
	if r.addressed() {
		// The second answer holds all of the first one.
		said = r.each(func(a *attached) []Finding { return a.examine(ctx) })
	}
	found = append(found, said...)
	return append(found, r.check(found)...)
}

// each calls f for all endpoints at once and returns what they found, in the
// order of the endpoints.
func (r *run) each(f func(a *attached) []Finding) []Finding {
	found := make([][]Finding, len(r.endpoints))
	var all sync.WaitGroup
	for i, a := range r.endpoints {
		all.Go(func() { found[i] = f(a) })
	}
	all.Wait()
	var out []Finding
	for _, fs := range found {
		out = append(out, fs...)
	}
	return out
}

// assemble makes the endpoints and subscriptions of this run out of what was
// registered.
func (r *run) assemble() []Finding {
	var found []Finding
	files := make(map[*os.File]*Endpoint)
	for _, e := range r.host.endpoints {
		a := &attached{run: r, endpoint: e, log: r.log.With("endpoint", e.name)}
		a.condition.turn(EndpointStarting, "")
		var err error
		if a.settings, err = encodeSettings(e.settings); err != nil {
			f := a.at()
			f.Option, f.Message, f.Err, f.Places = "settings", err.Error(), err, places(e.place)
			f.Fix = "give a struct of the transport's settings package, or a map"
			found = append(found, f)
			a.settings = nil
		}
		for _, s := range e.subs {
			sub := &subscribed{sub: s, on: a}
			fs := sub.assemble()
			found = append(found, fs...)
			if s.handled != nil {
				a.subs, r.subs = append(a.subs, sub), append(r.subs, sub)
			}
		}
		found = append(found, takeStdio(a, files)...)
		r.endpoints = append(r.endpoints, a)
		r.byName[e.name] = a
	}
	return found
}

// assemble encodes the subscription's options.
func (s *subscribed) assemble() []Finding {
	f := s.at()
	f.Places = places(s.sub.place)
	if s.sub.handled == nil {
		f.Option, f.Message, f.Fix = "Handle", "has no handler", "call host.Handle for it"
		return []Finding{f}
	}
	found := s.sub.handled.prepare()
	for i := range found {
		found[i].Endpoint, found[i].Subscription = f.Endpoint, f.Subscription
	}
	found = append(found, s.idleKeys()...)
	var err error
	if s.options, err = encodeSettings(s.sub.options); err != nil {
		f.Option, f.Message, f.Err = "options", err.Error(), err
		f.Fix = "give a struct of the transport's settings package, or a map"
		s.options, s.refused = []byte(noSettings), true
		return append(found, f)
	}
	return found
}

// takeStdio makes sure that one endpoint alone has a file.
func takeStdio(a *attached, files map[*os.File]*Endpoint) []Finding {
	if a.endpoint.plugin.Stdio == nil {
		return nil
	}
	in, out := a.endpoint.plugin.Stdio.files()
	for _, file := range []*os.File{in, out} {
		if other, taken := files[file]; taken && other != a.endpoint {
			f := a.at()
			f.Option, f.Places = "Plugin.Stdio", places(other.place, a.endpoint.place)
			f.Message = fmt.Sprintf("endpoint %s has the same standard input and output", other.name)
			f.Fix = "attach one endpoint with them"
			return []Finding{f}
		}
		files[file] = a.endpoint
	}
	return nil
}

// begin starts, describes and configures the first generation.
func (a *attached) begin(ctx context.Context) []Finding {
	if a.settings == nil {
		return nil
	}
	g, err := a.spawn(ctx, 1)
	if err != nil {
		return []Finding{a.failed("Plugin", err)}
	}
	a.started(1, g)
	a.first, a.spec = g, g.Description()
	a.log = a.log.With("plugin", a.plugin())
	found := a.checkStdio()
	var said []Finding
	// Without its files a transport can refuse its settings for that alone, which
	// is found already.
	if !a.lacksStdio() {
		if said, err = a.configure(ctx, g); err != nil {
			return append(found, a.failed("settings", err))
		}
		a.configured = len(said) == 0
	}
	found = append(found, said...)
	at := a.at()
	at.Places = places(a.endpoint.place)
	found = append(found, a.checkSettings(at, said)...)
	if a.publishSchema, err = schemacheck.Compile(a.spec.GetPublishSchema()); err != nil {
		found = append(found, brokenSchema(at, "WithOptions", err))
	}
	return append(found, a.checkOptions()...)
}

// checkSettings checks the endpoint's settings under the transport's schema; said
// is what the transport itself has found.
func (a *attached) checkSettings(at Finding, said []Finding) []Finding {
	schema, err := schemacheck.Compile(a.spec.GetSettingsSchema())
	if err != nil {
		return []Finding{brokenSchema(at, "settings", err)}
	}
	return checkSettings(at, "settings", schema, a.settings, said)
}

// checkOptions checks the options of the subscriptions under the transport's
// schema, which is read once: there may be thousands of them.
func (a *attached) checkOptions() []Finding {
	schema, err := schemacheck.Compile(a.spec.GetSubscriptionSchema())
	var found []Finding
	for _, s := range a.subs {
		if s.refused {
			continue // there are no options to check
		}
		at := s.at()
		at.Places = places(s.sub.place)
		var wrong []Finding
		if err != nil {
			wrong = []Finding{brokenSchema(at, "options", err)}
		} else {
			wrong = checkSettings(at, "options", schema, s.options, nil)
		}
		s.refused = len(wrong) > 0
		found = append(found, wrong...)
	}
	return found
}

// failed is a call or a start that did not come to an answer.
func (a *attached) failed(option string, err error) Finding {
	f := a.at()
	f.Option, f.Message, f.Err, f.Places = option, shorten(err.Error()), err, places(a.endpoint.place)
	var start *process.StartError
	var fault *core.Fault
	var breach *protocolError
	switch {
	case errors.As(err, &breach):
		f.Fix = "report it to the transport's author"
	case errors.Is(err, context.DeadlineExceeded):
		f.Message, f.Fix = "no answer in time", "see the plugin's log, or raise WithStartLimit or WithConnectLimit"
	case errors.As(err, &start):
		f.Message, f.Fix = fmt.Sprintf("%s: %s", start.Stage, start.Reason), start.Fix
		if start.Path != "" {
			f.Message = start.Path + ": " + f.Message
		}
		if start.Output != "" {
			f.Message += fmt.Sprintf("; it printed %q", start.Output)
		}
	case errors.As(err, &fault) && len(fault.Diagnostics) > 0:
		d := fault.Diagnostics[0]
		f.Option, f.Message, f.Fix = joinOption(option, shorten(d.Path)), shorten(cmp.Or(d.Message, fault.Message)), shorten(d.Fix)
	}
	return f
}

// checkStdio compares what the transport wants with what it is given.
func (a *attached) checkStdio() []Finding {
	f := a.at()
	f.Option, f.Places = "Plugin.Stdio", places(a.endpoint.place)
	switch {
	case a.lacksStdio():
		f.Message, f.Fix = "the transport needs the host's standard input and output", "set Plugin.Stdio to &host.Stdio{}"
	case a.endpoint.plugin.Stdio != nil && !a.spec.GetWantsStdio():
		f.Message, f.Fix = "the transport has no use for standard input and output", "leave Plugin.Stdio out"
	default:
		return nil
	}
	return []Finding{f}
}

// lacksStdio reports whether the transport is not given the files that it needs.
func (a *attached) lacksStdio() bool {
	return a.spec.GetWantsStdio() && a.endpoint.plugin.Stdio == nil
}

// examine inspects the endpoint's usage. An endpoint whose settings were refused
// says nothing more.
func (a *attached) examine(ctx context.Context) []Finding {
	if a.first == nil || !a.configured {
		return nil
	}
	report, err := a.inspect(ctx, a.first.Link())
	if err != nil {
		return []Finding{a.failed("Inspect", err)}
	}
	return a.read(report)
}

// read keeps what the plugin said and returns its findings.
func (a *attached) read(report *transportpb.InspectResponse) []Finding {
	a.inspected = true
	var found []Finding
	for _, f := range report.GetFindings() {
		found = append(found, pluginFinding(a.at(), f, places(a.endpoint.place)))
	}
	for i, r := range report.GetRegistrations() {
		s := a.subs[i]
		s.profiles = convert.ToProfiles(r.GetProfiles())
		if s.refused && len(s.profiles) == 0 {
			continue // it was refused for what the host has found already, in words of its own
		}
		for _, f := range r.GetFindings() {
			found = append(found, pluginFinding(s.at(), f, places(s.sub.place)))
			s.refused = s.refused || !f.GetWarning()
		}
	}
	a.targets = report.GetDestinations()
	for i, t := range a.targets {
		to := core.Destination{Endpoint: a.endpoint.name, Name: a.usage.request.Destinations[i].GetName()}
		for _, f := range t.GetFindings() {
			for _, u := range a.usage.users[i] {
				found = append(found, u.finding(a, to, f))
			}
		}
	}
	return found
}

// pluginFinding is a finding of a plugin.
func pluginFinding(at Finding, f *transportpb.Finding, ps []string) Finding {
	at.Option, at.Message, at.Fix = shorten(f.GetOption()), shorten(f.GetMessage()), shorten(f.GetFix())
	at.Warning = f.GetWarning()
	at.Places = ps
	return at
}

// finding is what a plugin said against a destination that u uses.
func (u user) finding(a *attached, to core.Destination, f *transportpb.Finding) Finding {
	at := u.at(a)
	at.Warning, at.Fix = f.GetWarning(), shorten(f.GetFix())
	at.Message = to.String() + ": " + shorten(f.GetMessage())
	if o := f.GetOption(); o != "" && o != "name" && o != u.option { // the name stands at the front
		at.Message += " (" + shorten(f.GetOption()) + ")"
	}
	return at
}

// addressed adds the own addresses of subscriptions that copies would go to to
// the usages, and reports whether there are any.
func (r *run) addressed() bool {
	any := false
	for _, s := range r.subs {
		if own := s.own(); !own.IsZero() && !s.rules().redirects() {
			r.want(user{s, "RetryTo", s.sub.place}, own, transportpb.Purpose_PURPOSE_RETRY)
			any = true
		}
	}
	return any
}

// own returns the subscription's own address, zero where it has none.
func (s *subscribed) own() core.Destination {
	for _, p := range s.profiles {
		if p.Address != "" {
			return core.Destination{Endpoint: s.on.endpoint.name, Name: p.Address}
		}
	}
	return core.Destination{}
}

// discard ends the first generations that were not handed over, all at once.
func (r *run) discard() {
	r.each(func(a *attached) []Finding {
		if a.first == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), discardLimit)
		defer cancel()
		if err := a.first.End(ctx); err != nil {
			a.log.Warn("end plugin", slog.Any("error", err))
		}
		a.first = nil
		return nil
	})
}
