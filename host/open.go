// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// refusedError says that what a generation offers is refused by the host's own
// checks. It never heals by itself.
type refusedError struct{ findings []Finding }

func (e *refusedError) Error() string {
	return (&StartError{Findings: e.findings}).Error()
}

// Unwrap makes a supervisor give up at once.
func (e *refusedError) Unwrap() error {
	return &core.Fault{Code: core.FaultInvalid, Message: "refused"}
}

// protocolError says that a plugin broke the contract in what it answered.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return "the plugin breaks the protocol: " + e.what }

// open connects a generation and opens its streams. Later generations than the
// first are configured and inspected again before.
func (a *attached) open(ctx context.Context, p process.Generation) error {
	if p.Generation() > 1 {
		if err := a.renew(ctx, p); err != nil {
			return err
		}
	}
	g := &generation{Generation: p}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := a.connect(ctx, g); err != nil {
		g.cancel()
		return fmt.Errorf("connect: %w", err)
	}
	a.mu.Lock()
	a.opening, a.breach = g, nil
	a.mu.Unlock()
	err := a.openStreams(ctx, g)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opening = nil
	if err == nil {
		a.now = g
		return nil
	}
	g.cancel()
	if a.breach != nil {
		return fmt.Errorf("open streams: %w", a.breach) // what else failed follows from it
	}
	return err
}

// openStreams opens the publish stream and the subscriptions.
func (a *attached) openStreams(ctx context.Context, g *generation) error {
	publish, cancel := context.WithCancel(g.ctx)
	out, err := within(ctx, cancel, func() (link.PublishStream, error) { return g.Link().Publish(publish) })
	if err != nil {
		cancel()
		return fmt.Errorf("open publish stream: %w", err)
	}
	a.outbox.Attach(out, g.Generation.Generation(), cancel)
	if err := a.subscribe(ctx, g); err != nil {
		a.outbox.Detach(err)
		return err
	}
	return nil
}

// renew configures and inspects a generation that replaces another one.
func (a *attached) renew(ctx context.Context, p process.Generation) error {
	found, err := a.configure(ctx, p)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if len(found) > 0 {
		return &refusedError{found}
	}
	report, err := a.inspect(ctx, p.Link())
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	for i, r := range report.GetRegistrations() {
		for _, f := range r.GetFindings() {
			found = append(found, pluginFinding(a.subs[i].at(), f, nil))
		}
	}
	if found = refusals(found); len(found) > 0 {
		return &refusedError{found}
	}
	return nil
}

// connect opens the endpoint with what the last generation handed over.
func (a *attached) connect(ctx context.Context, g *generation) error {
	ctx, cancel := context.WithTimeout(ctx, a.run.opts.connectLimit)
	defer cancel()
	a.mu.Lock()
	resume := a.resume
	a.mu.Unlock()
	r, err := g.Link().Connect(ctx, &transportpb.ConnectRequest{Resume: resume})
	if err != nil {
		return err
	}
	if len(r.GetResume()) > 0 {
		a.keepResume(r.GetResume())
	}
	a.keepAddresses(g, r.GetAddresses())
	return nil
}

// keepAddresses keeps where a generation listens, and tells.
func (a *attached) keepAddresses(g *generation, all []string) {
	kept, left := convert.Addresses(all)
	if left > 0 {
		a.log.Warn("addresses of the plugin are left out: over the protocol's limits, or no printable text",
			"generation", g.Generation.Generation(), "addresses", left)
	}
	if g.addresses = kept; len(kept) > 0 {
		a.log.Info("endpoint listens", "generation", g.Generation.Generation(), "addresses", kept)
	}
}

// keepResume keeps what the next generation gets.
func (a *attached) keepResume(resume []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resume = append([]byte(nil), resume...)
}

// subscribe opens all subscriptions that have not ended, and attaches their
// lanes once all of them are open.
func (a *attached) subscribe(ctx context.Context, g *generation) error {
	if a.run.stopping() {
		return nil // copies may still leave, nothing is read any more
	}
	attachments := make([]*settlement.Attachment, len(a.subs))
	errs := make([]error, len(a.subs))
	var all sync.WaitGroup
	for i, s := range a.subs {
		if s.over() {
			continue
		}
		all.Go(func() { attachments[i], errs[i] = s.open(ctx, g) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, at := range attachments {
			if at != nil {
				at.Cancel()
			}
		}
		return err
	}
	for i, s := range a.subs {
		if attachments[i] != nil {
			a.mu.Lock()
			s.lost = nil
			a.mu.Unlock()
			s.lane.Attach(*attachments[i])
		}
	}
	return nil
}

// over reports whether the subscription has come to its end, so that a new
// generation does not read it all again.
func (s *subscribed) over() bool {
	state := s.lane.State()
	return state.Ended && state.Fault == nil
}

// openError says which subscription could not be opened.
type openError struct {
	on  *subscribed
	err error
}

func (e *openError) Error() string {
	return fmt.Sprintf("open subscription %s: %v", e.on.sub.name, e.err)
}

func (e *openError) Unwrap() error { return e.err }

// open opens the subscription's stream on a generation and checks what it can
// do now.
func (s *subscribed) open(ctx context.Context, g *generation) (*settlement.Attachment, error) {
	ctx, done := context.WithTimeout(ctx, s.on.run.opts.connectLimit)
	defer done()
	sctx, cancel := context.WithCancel(g.ctx)
	at, err := within(ctx, cancel, func() (*settlement.Attachment, error) { return s.begin(sctx, g) })
	if err != nil {
		cancel()
		return nil, &openError{s, err}
	}
	at.Cancel = cancel
	return at, nil
}

// begin sends Start and waits for Started.
func (s *subscribed) begin(ctx context.Context, g *generation) (*settlement.Attachment, error) {
	stream, err := g.Link().Subscribe(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&frame.SubscribeRequest{
		Start: &transportpb.SubscribeStart{Registration: s.on.usage.request.Registrations[s.id]},
	}); err != nil {
		return nil, err
	}
	var r frame.SubscribeResponse
	if err := stream.Recv(&r); err != nil {
		return nil, err
	}
	if f := r.Ended.GetFault(); f != nil {
		return nil, convert.ToFault(f)
	}
	if r.Deliveries != nil {
		r.Deliveries.Release()
	}
	if r.Started == nil {
		return nil, &protocolError{"its first answer on a subscription is not Started"}
	}
	profiles := convert.ToProfiles(r.Started.GetProfiles())
	if len(profiles) == 0 {
		profiles = s.profiles
	}
	found := s.checkNarrower(profiles)
	if found = append(found, refusals(s.checkPolicy(profiles, nil))...); len(found) > 0 {
		return nil, &refusedError{found}
	}
	return &settlement.Attachment{
		Stream: stream, Profiles: profiles, Plugin: s.on.plugin(), Number: g.Generation.Generation(),
	}, nil
}

// within runs f, whose context cancel ends, and ends it when ctx does. The error
// is then ctx's.
func within[T any](ctx context.Context, cancel context.CancelFunc, f func() (T, error)) (T, error) {
	stop := context.AfterFunc(ctx, cancel)
	v, err := f()
	if stop() {
		return v, err
	}
	var zero T
	if err == nil {
		return zero, context.Cause(ctx)
	}
	return zero, fmt.Errorf("%w (%w)", err, context.Cause(ctx))
}

// reopen opens one subscription again that ended with a passing fault.
func (s *subscribed) reopen(ctx context.Context) error {
	g := s.on.current()
	if g == nil {
		return ErrEndpointDown // the next generation opens it
	}
	at, err := s.open(ctx, g)
	if err != nil {
		return err
	}
	s.on.mu.Lock()
	defer s.on.mu.Unlock()
	if s.on.now != g {
		at.Cancel()
		return ErrEndpointDown
	}
	s.lane.Attach(*at)
	return nil
}
