// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func settingsCases() []Case {
	return []Case{
		{
			ID: "settings/unknown-field", Section: sectionCalls,
			Claim: "A setting that there is not is refused with a diagnostic that names it, in objects within the settings too.",
			Applies: func(a *About) string {
				if len(a.settings().unknown()) == 0 {
					return "the settings schema allows fields that it does not name"
				}
				return ""
			},
			Run: func(t *Trial) { settingsRefused(t, shape.unknown) },
		},
		{
			ID: "settings/wrong-type", Section: sectionCalls,
			Claim:   "A setting of the wrong type is refused with a diagnostic that names it.",
			Applies: hasSettings, Run: func(t *Trial) { settingsRefused(t, t.mistyped) },
		},
		{
			ID: "settings/all-at-once", Section: sectionCalls,
			Claim: "All that is wrong with the settings is answered at once, one diagnostic for each field.",
			Applies: func(a *About) string {
				if s := a.settings(); len(s.properties(s.root)) == 0 && !closed(s.root) {
					return "the settings schema names no field and refuses none"
				}
				return ""
			},
			Run: settingsAllAtOnce,
		},
		{
			ID: "settings/missing", Section: sectionCalls,
			Claim: "A setting that has to be given and is not is refused with a diagnostic that names it.",
			Applies: func(a *About) string {
				if len(a.settings().missing()) == 0 {
					return "no setting has to be given"
				}
				return ""
			},
			Run: func(t *Trial) { settingsRefused(t, shape.missing) },
		},
		{
			ID: "settings/options", Section: sectionCalls,
			Claim:   "Options that there are not, or of the wrong type, are refused by Inspect with a finding that names them, at their own registration or destination.",
			Applies: optionsChecked, Run: settingsOptions,
		},
		{
			ID: "settings/secret-not-logged", Section: sectionLog,
			Claim: "No secret among the settings stands in the log, in a diagnostic or in an error.",
			Applies: func(a *About) string {
				if len(a.settings().secretPaths()) == 0 {
					return "the settings schema marks no field as a secret"
				}
				return ""
			},
			Run: settingsSecret,
		},
	}
}

func (a *About) settings() shape { return shapeOf(a.Describe.GetSettingsSchema()) }

func hasSettings(a *About) string {
	if s := a.settings(); len(s.properties(s.root)) == 0 {
		return "there are no settings"
	}
	return ""
}

// given are the case's settings.
func (t *Trial) given() map[string]any { return objectOf(t.Settings) }

// objectOf reads one JSON object; nothing is an empty one.
func objectOf(raw []byte) map[string]any {
	object := map[string]any{}
	if len(raw) > 0 {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		_ = d.Decode(&object) // it was checked at the start
	}
	return object
}

func (t *Trial) mistyped(s shape) []wrong { return s.mistyped(t.given()) }

// settingsRefused hands over settings with one thing wrong each, then the right
// ones, to one process.
func settingsRefused(t *Trial, ways func(shape) []wrong) {
	p := t.Start()
	all := ways(t.About.settings())
	if len(all) == 0 {
		t.Exemptf("the settings schema refuses no value of that kind")
	}
	for _, w := range all {
		p.refuses(apply(t.given(), w), fmt.Sprintf("settings in which %s %s", w.path, w.what), w)
	}
	p.takesRight()
}

// settingsAllAtOnce makes everything wrong that can be wrong at the same time.
func settingsAllAtOnce(t *Trial) {
	s := t.About.settings()
	var all []wrong
	used := map[string]bool{}
	add := func(ws []wrong) {
		for _, w := range ws {
			field, _, _ := strings.Cut(strings.ReplaceAll(w.path, "[", "."), ".")
			if !used[field] {
				used[field] = true
				all = append(all, w)
			}
		}
	}
	add(s.missing()[:min(1, len(s.missing()))])
	add(s.unknown())
	add(s.mistyped(t.given()))
	if closed(s.root) {
		const second = unknownField + "_2"
		all = append(all, wrong{second, "is no known field", func(o map[string]any) { o[second] = 1 }})
	}
	p := t.Start()
	p.refuses(apply(t.given(), all...), fmt.Sprintf("settings in which %d fields are wrong", len(all)), all...)
	p.takesRight()
}

// refuses hands wrong settings over and checks the answer.
func (p *Process) refuses(settings []byte, what string, all ...wrong) {
	ctx, cancel := p.t.limited()
	defer cancel()
	r, err := p.link.Configure(ctx, &transportpb.ConfigureRequest{
		Endpoint: "conform", Generation: p.proc.Generation(), Settings: settings, Stdio: p.stdio != nil,
	})
	if err != nil {
		p.t.Fatalf("Configure answers %s with the error %v: wrong settings are no error of the call, they are the fault of its answer", what, err)
	}
	fault := convert.ToFault(r.GetFault())
	if fault == nil {
		p.t.Fatalf("Configure takes %s", what)
	}
	if fault.Code != core.FaultInvalid {
		p.t.Errorf("Configure refuses %s with the code %v in place of invalid: %v", what, fault.Code, fault)
	}
	for _, w := range all {
		at := slices.IndexFunc(fault.Diagnostics, func(d core.Diagnostic) bool { return w.names(d.Path) })
		if at < 0 {
			p.t.Errorf("%s %s, and no diagnostic has its path: %s", w.path, w.what, pathsOf(fault.Diagnostics))
			continue
		}
		if d := fault.Diagnostics[at]; d.Message == "" || d.Fix == "" {
			p.t.Errorf("the diagnostic for %s does not say both what is wrong and what to do: %+v", w.path, d)
		}
	}
}

func pathsOf(ds []core.Diagnostic) string {
	if len(ds) == 0 {
		return "there is none at all"
	}
	paths := make([]string, len(ds))
	for i, d := range ds {
		paths[i] = fmt.Sprintf("%q", d.Path)
	}
	return "those that there are have " + some(paths)
}

// takesRight hands the right settings over, behind wrong ones, and ends.
func (p *Process) takesRight() {
	if p.t.Failed() {
		return // it may have taken wrong ones
	}
	if fault := p.Configure(p.t.Settings); fault != nil {
		p.t.Errorf("Configure refuses the right settings once it has refused wrong ones: %v", fault)
	}
	p.Unleash()
}

// optionsChecked says why there are no wrong options.
func optionsChecked(a *About) string {
	sub, pub := shapeOf(a.Describe.GetSubscriptionSchema()), shapeOf(a.Describe.GetPublishSchema())
	if (a.reads() == "" && len(sub.unknown()) > 0) || (a.writes() == "" && len(pub.unknown()) > 0) {
		return ""
	}
	return "the schemas of options allow fields that they do not name"
}

// settingsOptions asks about wrong options before and behind right ones of
// another name.
func settingsOptions(t *Trial) {
	const other = "-other"
	p := t.Configured()
	d := p.Description()
	try := func(of string, schema, given []byte, ask func(u *transportpb.InspectRequest, other bool, options []byte), findings func(*transportpb.InspectResponse, int) []*transportpb.Finding) {
		s := shapeOf(schema)
		for _, w := range append(s.unknown(), s.mistyped(objectOf(given))...) {
			bad := apply(objectOf(given), w)
			for at := range 2 {
				u := &transportpb.InspectRequest{}
				for i := range 2 {
					options := given
					if i == at {
						options = bad
					}
					ask(u, i != at, options)
				}
				in := p.Inspect(u)
				t.found(of, w, findings(in, at))
				t.unnamed(of, w, findings(in, 1-at))
			}
		}
	}
	if t.About.reads() == "" {
		try("subscription", d.GetSubscriptionSchema(), t.Options, func(u *transportpb.InspectRequest, second bool, options []byte) {
			r := &transportpb.Registration{Id: uint32(len(u.GetRegistrations())), Name: t.Subscription(), Options: options}
			if second {
				r.Name += other
			}
			u.Registrations = append(u.Registrations, r)
		}, func(in *transportpb.InspectResponse, i int) []*transportpb.Finding {
			return in.GetRegistrations()[i].GetFindings()
		})
	}
	if t.About.writes() == "" {
		try("destination", d.GetPublishSchema(), t.Send, func(u *transportpb.InspectRequest, second bool, options []byte) {
			target := &transportpb.Target{Name: t.Destination(), Purpose: transportpb.Purpose_PURPOSE_APPLICATION, Options: options}
			if second {
				target.Name += other
			}
			u.Destinations = append(u.Destinations, target)
		}, func(in *transportpb.InspectResponse, i int) []*transportpb.Finding {
			return in.GetDestinations()[i].GetFindings()
		})
	}
	p.Unleash()
}

// found checks that a finding refuses what is wrong by its path.
func (t *Trial) found(of string, w wrong, findings []*transportpb.Finding) {
	fault := refusal(findings)
	if fault == nil {
		t.Errorf("Inspect does not refuse options of a %s in which %s %s", of, w.path, w.what)
		return
	}
	if !slices.ContainsFunc(fault.Diagnostics, func(d core.Diagnostic) bool { return w.names(d.Path) }) {
		t.Errorf("Inspect refuses options of a %s in which %s %s, and no finding has its path: %s",
			of, w.path, w.what, pathsOf(fault.Diagnostics))
	}
}

// unnamed checks that right options are not refused for those of another.
func (t *Trial) unnamed(of string, w wrong, findings []*transportpb.Finding) {
	if fault := refusal(findings); fault != nil && slices.ContainsFunc(fault.Diagnostics, func(d core.Diagnostic) bool { return w.names(d.Path) }) {
		t.Errorf("Inspect refuses a %s for the options of another one: %v", of, fault)
	}
}

const (
	// shortSecret is the longest text that may stand in a log for other reasons.
	shortSecret = 5

	// strangerLimit is how long Connect is waited for with secrets that open
	// nothing.
	strangerLimit = 2 * time.Second
)

// settingsSecret looks for secrets in what a process logs and answers: for those
// that were given in a whole life, for made ones where they are refused.
func settingsSecret(t *Trial) {
	s := t.About.settings()
	mark := "hush-" + t.Word
	t.log.watch(mark)
	marked := t.given()
	for i, path := range s.secretPaths() {
		if old, ok := textAt(t.given(), path); ok && len(old) > shortSecret {
			t.log.watch(old)
		}
		setText(marked, path, fmt.Sprintf("%s-%d", mark, i))
	}
	silent := func(where string, text string) {
		if strings.Contains(text, mark) {
			t.Errorf("%s shows a secret among the settings", where)
		}
	}
	// Each of them refused, then perhaps taken, perhaps used.
	p := t.Start()
	p.LogLevel("debug")
	refused := maps.Clone(marked)
	refused[unknownField] = true
	for _, settings := range []map[string]any{refused, marked} {
		if fault := p.Configure(apply(settings)); fault != nil {
			silent("a fault of Configure", fmt.Sprintf("%v %+v", fault, fault.Diagnostics))
			continue
		}
		ctx, cancel := context.WithTimeout(t.Ctx, strangerLimit)
		if err := p.connect(ctx); err != nil {
			silent("an error of Connect", err.Error())
		}
		cancel()
		break
	}
	p.Unleash()
	t.keep(nil) // whoever it was connected as

	p = t.Start()
	p.LogLevel("debug")
	if fault := p.Configure(t.Settings); fault != nil {
		t.Fatalf("Configure refuses the settings that it took before: %v", fault)
	}
	p.Inspect(t.Usage())
	p.Connect()
	x := t.traffic(p)
	x.round(1)
	x.end()
	p.Close()
	if t.log.told() {
		t.Errorf("the plugin's log shows a secret among the settings")
	}
}

// textAt returns the text at a place of an object.
func textAt(object map[string]any, path []string) (string, bool) {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}
	text, ok := object[path[len(path)-1]].(string)
	return text, ok
}

// setText puts a text at a place of an object, which is copied on the way.
func setText(object map[string]any, path []string, text string) {
	for _, name := range path[:len(path)-1] {
		inner, _ := object[name].(map[string]any)
		if inner = maps.Clone(inner); inner == nil {
			inner = map[string]any{}
		}
		object[name] = inner
		object = inner
	}
	object[path[len(path)-1]] = text
}
