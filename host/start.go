// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/frame"
)

// start prepares, connects and subscribes everything, and grants the first
// credit. Its error is a *StartError; nothing is left then.
func (r *run) start(ctx context.Context) error {
	found := r.prepare(ctx)
	refused := refusals(found)
	if ctx.Err() != nil || len(refused) > 0 {
		r.discard()
		r.finish()
		return startError(ctx, refused)
	}
	r.announce(found)
	r.build()
	for _, a := range r.endpoints {
		a.keep()
	}
	refused = r.awaitOpen(ctx)
	if ctx.Err() != nil || len(refused) > 0 {
		r.abandonStart()
		return startError(ctx, refused)
	}
	if err := r.restore(ctx); err != nil {
		r.abandonStart()
		return startError(ctx, []Finding{{
			Option: "WithJournal", Message: err.Error(), Err: err, Fix: "repair the journal, or start without it",
		}})
	}
	r.host.run.Store(r)
	r.openOutlets() // before anybody may hold the host for ready, and before the first handler
	r.state.Store(stateServing)
	r.host.enter(StateServing, nil)
	for _, s := range r.subs {
		s.lane.Grant()
	}
	r.log.Info("host serves", "endpoints", len(r.endpoints), "subscriptions", len(r.subs))
	return nil
}

// startError is the error of a start that found something or was cut short.
func startError(ctx context.Context, refused []Finding) error {
	if err := ctx.Err(); err != nil {
		// What a cancelled call says is no finding.
		return &StartError{Err: fmt.Errorf("cut short: %w", err)}
	}
	return &StartError{Findings: refused}
}

// announce says what people should know of a start that goes on.
func (r *run) announce(found []Finding) {
	for _, f := range found {
		r.log.Warn("check: "+f.Message, "code", core.LogCheck.String(), "endpoint", f.Endpoint,
			"subscription", f.Subscription, "option", f.Option, "fix", f.Fix,
			"place", strings.Join(f.Places, " and "))
	}
	for _, s := range r.subs {
		log := s.on.log.With("subscription", s.sub.name)
		if !s.policy.Empty() {
			attrs := []any{
				"code", core.LogDeclared.String(),
				"max_attempts", s.policy.MaxAttempts, "dead_letter", s.dead.To.String(), "applied_by", "host",
			}
			if s.policy.Elapsed {
				attrs = append(attrs, "max_elapsed", s.declared.MaxElapsed)
			}
			log.Info("policy is declared", attrs...)
		}
		for _, p := range s.profiles {
			if p.Ack != core.AckNone && p.Unsettled == core.UnsettledLost {
				log.Info("a delivery that ends without a verdict is not promised to come again")
				break
			}
		}
	}
}

// build makes what carries out settlements.
func (r *run) build() {
	o := r.opts
	r.waiting = settlement.NewWaiting(settlement.WaitingOptions{
		Logger: o.logger, Messages: o.waitMessages, Bytes: o.waitBytes,
	})
	for _, a := range r.endpoints {
		a.opened = make(chan error, 1)
		a.requests.room.messages, a.requests.room.bytes = requestsMost, requestsMostBytes
		a.outbox = settlement.NewOutbox(settlement.OutboxOptions{
			Endpoint: a.endpoint.name, Logger: o.logger, Messages: o.windowCount, Bytes: o.windowBytes,
			Broken: a.broken, Answered: a.published(),
		})
	}
	for _, s := range r.subs {
		s.hooks = newHooks(s)
		s.sub.handled.runs.serve(s)
		s.lane = s.sub.pausing.begin(s.laneOptions(), s.on.spec.GetSeeks())
	}
	r.host.show(r)
}

// credit is the window that the subscription declares; 0 = by default.
func (s *subscribed) credit() frame.Credit {
	return frame.Credit{Messages: uint64(s.sub.window.messages), Bytes: uint64(s.sub.window.bytes)}
}

// laneOptions describe the subscription to the engine.
func (s *subscribed) laneOptions() settlement.LaneOptions {
	r, rules := s.on.run, s.rules()
	o := settlement.LaneOptions{
		Endpoint: s.on.endpoint.name, Subscription: s.sub.name, Logger: r.opts.logger,
		Policy: s.policy, Handle: s.sub.handled.runs.handle, Exited: s.sub.handled.runs.exited,
		RetryTo: s.retry, Dead: s.dead, Causes: s.causes,
		Batch: s.sub.handled.runs.batch(), Workers: rules.workers, Key: rules.key, KeyHeader: rules.header, Circuit: rules.circuit,
		Pace:    s.pace(),
		NoFloor: rules.noFloor, Floor: rules.floor, MaxElapsed: rules.maxElapsed, MaxElapsedAt: string(s.placeOf("MaxElapsed")),
		SnoozeLimit: rules.snoozes, SnoozeTotal: rules.snoozedIn,
		Window:   s.credit(),
		Outboxes: r.outbox, Waiting: r.waiting, Journal: engineJournal(r.opts.journal),
		PublishLimit: r.opts.publishLimit,
		Failed: func(err error) {
			r.fail(&HandlerError{Endpoint: s.on.endpoint.name, Subscription: s.sub.name, Err: err})
		},
		Broken:  s.on.broken,
		Changed: r.nudge,
	}
	if s.hooks != nil {
		o.Finished, o.Keep = s.hooks.finished, s.hooks.keep
	}
	s.metered(&o)
	if rules.retryFunc != nil {
		o.RetryFunc = newComputed(s).route
	}
	return o
}

// keep starts the endpoint's supervisor.
func (a *attached) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	a.release, a.gone = cancel, false
	a.supervised = make(chan struct{})
	go func() {
		defer close(a.supervised)
		a.supervise(ctx)
	}()
}

// awaitOpen waits until every endpoint has tried to open, and returns what
// keeps the host from starting. An optional endpoint may heal later.
func (r *run) awaitOpen(ctx context.Context) []Finding {
	return refusals(r.each(func(a *attached) []Finding {
		var err error
		select {
		case err = <-a.opened:
		case <-ctx.Done():
			return nil
		}
		if err == nil {
			return nil
		}
		var refused *refusedError
		if errors.As(err, &refused) {
			return refused.findings
		}
		var fault *core.Fault
		if a.endpoint.plugin.Optional && (!errors.As(err, &fault) || fault.Transient) {
			a.log.Warn("optional endpoint is not up yet", slog.Any("error", err))
			return nil
		}
		return a.openFindings(err)
	}))
}

// openFindings are the findings of an endpoint that could not be opened, one
// for each subscription that failed.
func (a *attached) openFindings(err error) []Finding {
	var out []Finding
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, a.openFindings(e)...)
		}
		return out
	}
	var one *openError
	if errors.As(err, &one) {
		f := a.failed("Subscription", one.err)
		f.Subscription, f.Places = one.on.sub.name, places(one.on.sub.place)
		return []Finding{f}
	}
	return []Finding{a.failed("Connect", err)}
}

// restore takes over the copies that former runs left in the journal.
func (r *run) restore(ctx context.Context) error {
	j := engineJournal(r.opts.journal)
	if j == nil {
		return nil
	}
	return r.waiting.Restore(ctx, settlement.RestoreOptions{Journal: j, Outboxes: r.outbox, Route: r.routeOf})
}
