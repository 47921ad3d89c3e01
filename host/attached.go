// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/accepted"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/pluginapi/inproc"
)

// attached is one endpoint in one run of the host, over all generations of its
// plugin.
type attached struct {
	run      *run
	endpoint *Endpoint
	log      *slog.Logger
	subs     []*subscribed

	// Set by the start, before any other goroutine sees them.
	settings              []byte
	spec                  *transportpb.DescribeResponse
	first                 process.Generation // started and configured, not connected; nil after it was handed over
	configured, inspected bool
	usage                 usage
	targets               []*transportpb.TargetReport // of usage's destinations
	publishSchema         *schemacheck.Schema         // of the options of messages
	goodOptions           accepted.Texts              // of messages

	outbox     *settlement.Outbox
	requests   requests
	opened     chan error         // what the first try to open it came to
	release    context.CancelFunc // ends the supervisor
	supervised chan struct{}      // closed when it has ended

	mu        sync.Mutex
	now       *generation // nil = down
	opening   *generation // connected, its streams are being opened
	resume    []byte
	linkDown  bool
	gone      bool  // an optional endpoint that is lost for good
	breach    error // why the host killed the last generation; nil = it did not
	condition condition
}

// generation is what the host opened on one life of a plugin.
type generation struct {
	process.Generation
	ctx       context.Context // of its streams
	cancel    context.CancelFunc
	addresses []string // where it listens; set before it is up
}

// subscribed is one subscription in one run of the host.
type subscribed struct {
	sub *Subscription
	on  *attached
	id  uint32 // index in the endpoint's usage

	options  []byte
	refused  bool // what it was declared with is found wrong already; its profiles are not known then
	profiles []core.Capabilities
	policy   core.Policy
	declared core.Declared
	retry    core.Route
	dead     core.Route
	causes   bool

	lane        *settlement.Lane
	hooks       *hooks // nil = none
	reopening   atomic.Bool
	ended       atomic.Bool   // when the host's stop began
	lost        error         // of an optional endpoint: why it is not opened again; the endpoint's mu guards it
	staleBefore atomic.Uint64 // deliveries that were stale when the generation came up
}

// rules returns the declared rules.
func (s *subscribed) rules() *ruleSet { return &s.sub.handled.rules }

// at returns a finding about the subscription with nothing in it.
func (s *subscribed) at() Finding {
	return Finding{Endpoint: s.on.endpoint.name, Subscription: s.sub.name}
}

// at returns a finding about the endpoint with nothing in it.
func (a *attached) at() Finding { return Finding{Endpoint: a.endpoint.name} }

// restarts reports whether the plugin is started again after a crash.
func (a *attached) restarts() bool {
	return a.spec.GetRestart() != transportpb.RestartMode_RESTART_MODE_NEVER
}

// plugin returns the transport's name.
func (a *attached) plugin() string {
	if name := a.spec.GetName(); name != "" {
		return name
	}
	return a.endpoint.plugin.Name
}

// spawn starts one generation of the endpoint's plugin.
func (a *attached) spawn(ctx context.Context, number uint64) (process.Generation, error) {
	p := a.endpoint.plugin
	if p.InProcess != nil {
		return a.spawnInProcess(number)
	}
	o := process.Options{
		Name: p.Name, Path: p.Path, Checksum: p.Checksum, Env: p.Env,
		Endpoint:   a.endpoint.name,
		Host:       version(),
		Logger:     a.run.opts.logger,
		StartLimit: a.run.opts.startLimit,
		Heartbeat:  a.run.opts.heartbeat,
		Missed:     a.run.opts.missed,
	}
	if p.Stdio != nil {
		in, out := p.Stdio.files()
		o.Stdio = &process.Stdio{In: in, Out: out}
	}
	g, err := process.Start(ctx, number, o)
	if err != nil {
		return nil, err // not g: a nil *Process is no nil Generation
	}
	return g, nil
}

// spawnInProcess starts a generation without a process.
func (a *attached) spawnInProcess(number uint64) (process.Generation, error) {
	p := a.endpoint.plugin
	o := inproc.Options{Endpoint: a.endpoint.name, Generation: number, Logger: a.log.With("generation", number)}
	if p.Stdio != nil {
		stdio, err := pluginapi.NewStdio(p.Stdio.files())
		if err != nil {
			return nil, err
		}
		o.Stdio = stdio
	}
	g, err := inproc.New(p.InProcess, o)
	if err != nil {
		closeStdio(o.Stdio)
		return nil, err
	}
	if o.Stdio != nil {
		a.run.goroutines.Go(func() {
			<-g.Done()
			closeStdio(o.Stdio)
		})
	}
	return g, nil
}

// closeStdio closes the descriptors of a transport that ran in process; it has
// no use for them any more.
func closeStdio(s *pluginapi.Stdio) {
	if s != nil {
		_ = s.Close() // descriptors of its own, nothing is buffered
	}
}

// version names the host and its version, for the logs of plugins.
func version() string {
	const name, path = "longshore", "github.com/longshore-go/longshore"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path {
			return name + " " + m.Version
		}
	}
	return name
}

// configure hands the settings over; what the plugin says against them are
// findings.
func (a *attached) configure(ctx context.Context, g process.Generation) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, a.run.opts.startLimit)
	defer cancel()
	r, err := g.Link().Configure(ctx, &transportpb.ConfigureRequest{
		Endpoint:   a.endpoint.name,
		Generation: g.Generation(),
		Settings:   a.settings,
		Stdio:      a.endpoint.plugin.Stdio != nil,
	})
	if err != nil {
		return nil, err
	}
	f := convert.ToFault(r.GetFault())
	if f == nil {
		return nil, nil
	}
	at := a.at()
	at.Places, at.Err = places(a.endpoint.place), f
	if len(f.Diagnostics) == 0 {
		at.Option, at.Message = "settings", shorten(f.Message)
		return []Finding{at}, nil
	}
	return settingFindings(at, "settings", f.Diagnostics), nil
}

// current returns the generation that is up, nil when there is none.
func (a *attached) current() *generation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// isGone reports whether the endpoint was optional and is lost for good.
func (a *attached) isGone() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone
}

// ready reports whether the endpoint serves.
func (a *attached) ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now != nil && !a.linkDown && !a.gone
}
