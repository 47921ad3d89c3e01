// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/handshake"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Options tune a run.
type Options struct {
	Only     func(id string) bool // cases to run; nil = all
	Parallel int                  // cases at a time; default 4
	Progress func(r Result)       // called as cases end, one at a time; nil = nobody
	Logger   *slog.Logger         // of the plugins; nil discards
	// Host returns a command that acts as a host, by HostMain, and is killed. nil:
	// the cases that need it are not run.
	Host func() (command []string, err error)
}

const (
	// defaultParallel is how many cases run at a time: most of them wait.
	defaultParallel = 4

	// trialWaits is how many times the subject's Wait a whole case may take: every
	// step has its own limit, this one ends what has none.
	trialWaits = 10

	// startLimit is how long a plugin may take until it has described itself: no
	// case is about that.
	startLimit = time.Minute
)

// process returns how the subject's plugin is run.
func (Options) process(s Subject) process.Options {
	return process.Options{
		Name: transportName(s.Path), Path: s.Path, Env: s.Env, Endpoint: "conform", Host: "longshore conform",
		StartLimit: startLimit, EndLimit: stretched(endLimit), Heartbeat: -1,
	}
}

// transportName is the transport that a file's name stands for.
func transportName(path string) string {
	base := path[strings.LastIndexByte(path, os.PathSeparator)+1:]
	if name, ok := strings.CutPrefix(base, handshake.FilePrefix); ok {
		return name
	}
	return base
}

// Run runs the suite. Its error is a *process.StartError where there is no
// plugin, a *SubjectError, a *SettingsError, a *ConnectError, or the context's;
// the report is nil then. A plugin that breaks its promises is no error.
func Run(ctx context.Context, s Subject, o Options) (*Report, error) {
	s = s.withDefaults()
	begun := time.Now()
	word, err := runWord()
	if err != nil {
		return nil, err
	}
	about, err := preflight(ctx, s, o, word)
	if err != nil {
		return nil, err
	}
	report := &Report{Started: begun}
	if report.Plugin, err = describe(about); err != nil {
		return nil, err
	}
	r := &runner{ctx: ctx, about: about, options: o, word: word}
	report.Results, report.Selected = r.all()
	report.Time = time.Since(begun)
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return report, nil
}

// runWord is a word that no other run has.
func runWord() (string, error) {
	b := make([]byte, 4)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make a word for names: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// describe says what is proved.
func describe(a *About) (Plugin, error) {
	s := a.Subject
	sum, err := process.Checksum(s.Path)
	if err != nil {
		return Plugin{}, err
	}
	p := Plugin{
		Name: a.Describe.GetName(), Version: a.Describe.GetVersion(), Path: s.Path, Checksum: sum,
		Protocol: handshake.Version, Digest: Digest(a.Profiles, a.Publishing),
		Subscription: s.Subscription, Destination: s.Destination, Profiles: a.Profiles, Publishing: a.Publishing,
	}
	if p.Settings, err = shown(s.Settings, a.Describe.GetSettingsSchema()); err != nil {
		return Plugin{}, err
	}
	p.Options, err = shown(s.Options, a.Describe.GetSubscriptionSchema())
	return p, err
}

// runner runs cases.
type runner struct {
	ctx     context.Context
	about   *About
	options Options
	word    string

	mu sync.Mutex // of Progress
}

// all runs the cases that are asked for: those that measure alone at the end.
func (r *runner) all() (results []Result, selected bool) {
	cases := Cases()
	if only := r.options.Only; only != nil {
		chosen := cases[:0:0]
		for _, c := range cases {
			if only(c.ID) {
				chosen = append(chosen, c)
			}
		}
		selected = len(chosen) < len(cases)
		cases = chosen
	}
	results = make([]Result, len(cases))
	n := r.options.Parallel
	if n <= 0 {
		n = defaultParallel
	}
	if r.about.Shared { // they would take each other's messages
		n = 1
	}
	places := make(chan struct{}, n)
	var wait sync.WaitGroup
	for i := range cases {
		if cases[i].Alone {
			continue
		}
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			results[i] = r.one(&cases[i])
		})
	}
	wait.Wait()
	for i := range cases {
		if cases[i].Alone {
			results[i] = r.one(&cases[i])
		}
	}
	return results, selected
}

// unsafeWord is what must not stand in a name made of a case's id.
var unsafeWord = regexp.MustCompile(`[^a-z0-9]+`)

// one runs one case.
func (r *runner) one(c *Case) Result {
	if r.ctx.Err() != nil {
		return Result{Case: c.ID, Claim: c.Claim, Section: c.Section, Status: NotRun, Reason: "the run was stopped"}
	}
	result := Result{Case: c.ID, Claim: c.Claim, Section: c.Section}
	if c.Applies != nil {
		result.Reason = c.Applies(r.about)
		result.Status = NotApplicable
	}
	if result.Reason == "" && c.Needs != nil {
		if lacks := c.Needs(r.about); lacks != "" {
			result.Reason, result.Status = "the subject lacks "+lacks, NotRun
		}
	}
	if result.Reason == "" {
		result = r.trial(c)
	}
	if r.ctx.Err() != nil {
		return result // what the end of the run did to it is no verdict
	}
	if r.options.Progress != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.options.Progress(result)
	}
	return result
}

func (r *runner) trial(c *Case) Result {
	ctx, cancel := context.WithTimeout(r.ctx, trialWaits*r.about.Subject.Wait)
	defer cancel()
	t := newTrial(ctx, r.about.Subject, r.options, unsafeWord.ReplaceAllString(c.ID, "-")+"-"+r.word)
	t.About = r.about
	begun := time.Now()
	t.run(c)
	return t.result(c, time.Since(begun))
}

func newTrial(ctx context.Context, s Subject, o Options, word string) *Trial {
	return &Trial{Ctx: ctx, Subject: s, Word: word, options: o, log: newLogbook(o.Logger)}
}

// preflight starts the plugin once and brings it as far as a subscription.
func preflight(ctx context.Context, s Subject, o Options, word string) (about *About, err error) {
	t := newTrial(ctx, s, o, "preflight-"+word)
	defer t.clean()
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stopTrial); !ok {
				panic(p)
			}
			about, err = nil, errors.New(t.faults[0])
		}
	}()
	if t.Dir, err = os.MkdirTemp("", "longshore-conform-"); err != nil {
		return nil, err
	}
	t.cleanup(func() { _ = os.RemoveAll(t.Dir) })
	if err := t.prepare(); err != nil {
		return nil, err
	}
	asked, err := t.start() // without standard input and output: only to ask
	if err != nil {
		return nil, err
	}
	d := asked.Description()
	about = &About{Subject: s, Describe: d}
	if err := checkSettings(d, t.Settings); err != nil {
		return nil, err
	}
	p := asked
	if d.GetWantsStdio() {
		asked.discard()
		t.About = &About{Subject: s, Describe: d, Profiles: []core.Capabilities{{}}, Publishing: &core.Publishing{}}
		if p, err = t.start(); err != nil {
			return nil, err
		}
	}
	if fault := p.Configure(t.Settings); fault != nil {
		return nil, &SettingsError{Plugin: d.GetName(), Step: "settings", Fault: fault}
	}
	if err := about.inspect(t, p); err != nil {
		return nil, err
	}
	limited, cancel := t.limited()
	defer cancel()
	if err := p.connect(limited); err != nil {
		return nil, &ConnectError{Plugin: d.GetName(), Err: err}
	}
	if about.Unreadable == "" {
		sub, err := p.open(t.registration())
		if err != nil {
			return nil, &ConnectError{Plugin: d.GetName(), Err: fmt.Errorf("subscribe to %s: %w", t.Subscription(), err)}
		}
		about.Profiles = sub.Profiles()
		sub.Cancel()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resume = nil
	about.Shared = !d.GetWantsStdio() && !s.apart()
	return about, about.reachable()
}

// inspect asks what the subscription and the destination can do.
func (a *About) inspect(t *Trial, p *Process) error {
	s := a.Subject
	u := &transportpb.InspectRequest{
		Destinations: []*transportpb.Target{{Name: t.Destination(), Purpose: transportpb.Purpose_PURPOSE_APPLICATION, Options: t.Send}},
	}
	if s.SendOnly {
		a.Unreadable = "the subject only sends"
	} else {
		u.Registrations = []*transportpb.Registration{t.registration()}
	}
	limited, cancel := t.limited()
	defer cancel()
	r, err := p.link.Inspect(limited, u)
	if err != nil {
		return &SettingsError{Plugin: a.Describe.GetName(), Step: "subscription", Fault: link.AsFault(err)}
	}
	if len(r.GetRegistrations()) != len(u.Registrations) || len(r.GetDestinations()) != 1 {
		return &SettingsError{Plugin: a.Describe.GetName(), Step: "subscription", Fault: &core.Fault{
			Code: core.FaultInternal, Message: fmt.Sprintf("Inspect was asked about %d registrations and one destination and answers about %d and %d", len(u.Registrations), len(r.GetRegistrations()), len(r.GetDestinations())),
		}}
	}
	if fault := refusal(r.GetFindings()); fault != nil {
		return &SettingsError{Plugin: a.Describe.GetName(), Step: "settings", Fault: fault}
	}
	var read *core.Fault
	if !s.SendOnly {
		read = refusal(r.GetRegistrations()[0].GetFindings())
	}
	write := refusal(r.GetDestinations()[0].GetFindings())
	switch {
	case read != nil && (s.Subscription != DefaultSubscription || s.Options != nil || write != nil):
		return &SettingsError{Plugin: a.Describe.GetName(), Step: "subscription", Fault: read}
	case write != nil && s.Destination != s.Subscription:
		return &SettingsError{Plugin: a.Describe.GetName(), Step: "destination", Fault: write}
	}
	if read != nil {
		a.Unreadable = read.Error()
	}
	if write != nil {
		a.Unwritable = write.Error()
		return nil
	}
	publishing := convert.ToPublishing(r.GetDestinations()[0].GetPublishing())
	a.Publishing = &publishing
	a.Returns = len(r.GetDestinations()[0].GetReturnsTo()) > 0 && a.Unreadable == ""
	return nil
}

// refusal is what refuses a start, nil for nothing.
func refusal(findings []*transportpb.Finding) *core.Fault {
	var fault *core.Fault
	for _, f := range findings {
		if f.GetWarning() {
			continue
		}
		if fault == nil {
			fault = &core.Fault{Code: core.FaultInvalid, Message: "refused"}
		}
		fault.Diagnostics = append(fault.Diagnostics, core.Diagnostic{Path: f.GetOption(), Message: f.GetMessage(), Fix: f.GetFix()})
	}
	return fault
}

// reachable says what is missing to try anything at all.
func (a *About) reachable() error {
	s := a.Subject
	if len(a.Profiles) > 0 && s.Inject == nil && !a.Returns {
		return &SubjectError{
			Field:  "inject",
			Reason: fmt.Sprintf("what is published to %s does not come back to the subscription %s", s.Destination, s.Subscription),
			Fix:    "give an injector, or a destination that returns to the subscription",
		}
	}
	if a.Publishing != nil && s.Collect == nil && !a.Returns {
		return &SubjectError{
			Field:  "collect",
			Reason: fmt.Sprintf("what is published to %s is not read by the subscription %s", s.Destination, s.Subscription),
			Fix:    "give a collector, or a destination that returns to the subscription",
		}
	}
	return nil
}
