// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/process"
)

// Health returns what the host is at: its endpoints and subscriptions, since
// when, and why. It may be called at any time and from any goroutine; it asks
// no plugin.
func (h *Host) Health() Health {
	h.made("Health")
	h.mu.Lock()
	now := Health{State: h.state, Since: h.since, Reason: h.reason, Endpoints: []EndpointHealth{}}
	r, ran := h.shown, h.ran
	h.mu.Unlock()
	switch {
	case r != nil:
		now.Ready = now.State == StateServing && r.ready()
		now.Waiting = r.waiting.Len()
		for _, a := range r.endpoints {
			now.Endpoints = append(now.Endpoints, a.health(now))
		}
	case ran: // nothing is registered any more
		for _, e := range h.endpoints {
			now.Endpoints = append(now.Endpoints, e.unbuilt(now))
		}
	}
	return now
}

// enter notes what the host is at. Without a cause the reason stays as it is.
func (h *Host) enter(s State, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != s {
		h.state, h.since = s, time.Now()
	}
	if s == StateStopping {
		h.stop = h.since
	}
	if cause != nil {
		h.reason = cause.Error()
	}
}

// stopped returns when a stop began.
func (h *Host) stopped() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stop
}

// show lets Health read a run, whose lanes and outboxes are there.
func (h *Host) show(r *run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = r
}

// unbuilt is what an endpoint is at of which nothing was opened.
func (e *Endpoint) unbuilt(now Health) EndpointHealth {
	out := EndpointHealth{
		Name: e.name, Transport: e.plugin.Name, Optional: e.plugin.Optional, State: EndpointStarting, Since: now.Since,
		Subscriptions: []SubscriptionHealth{},
	}
	state := SubscriptionWaiting
	if now.State == StateStopped {
		out.State, state = EndpointStopped, SubscriptionStopped
	}
	for _, s := range e.subs {
		out.Subscriptions = append(out.Subscriptions, SubscriptionHealth{Name: s.name, State: state, Since: now.Since})
	}
	return out
}

// condition is what an endpoint is at, as Health tells it.
type condition struct {
	state      EndpointState
	since      time.Time
	fell       time.Time // when it ceased to be up; valid while it is not
	reason     string
	generation uint64             // that is up, or was last
	tries      uint64             // starts so far
	last       process.Generation // the one that was started last, for what it printed
}

// turn changes the condition; cause is why it is not up.
func (c *condition) turn(s EndpointState, cause string) {
	if c.state != s {
		now := time.Now()
		if c.state == EndpointUp {
			c.fell = now
		}
		c.state, c.since = s, now
	}
	c.reason = shorten(cause)
}

// become notes what the endpoint is at. One that is lost for good stays so.
func (a *attached) become(s EndpointState, cause error) {
	text := ""
	if cause != nil {
		text = cause.Error()
	}
	a.change(func() {
		if a.condition.state != EndpointLost {
			a.condition.turn(s, text)
		}
	})
}

// isUp notes that a generation is up.
func (a *attached) isUp(g process.Generation) {
	a.change(func() {
		a.condition.generation = g.Generation()
		a.condition.turn(EndpointUp, "")
	})
}

// stillDown notes why the endpoint is not up yet.
func (a *attached) stillDown(cause error) {
	a.change(func() { a.condition.turn(a.condition.state, cause.Error()) })
}

// change calls f with a.mu held, and tells the meter where that has changed the
// endpoint's state.
func (a *attached) change(f func()) {
	a.mu.Lock()
	was := a.condition.state
	f()
	c := a.condition
	a.mu.Unlock()
	if m := a.run.opts.meter; m != nil && c.state != was {
		m.EndpointChanged(EndpointEvent{
			Endpoint: a.endpoint.name, State: c.state, Since: c.since, Reason: c.reason, Generation: c.generation,
		})
	}
}

// started notes a start of its plugin; g is nil where it failed.
func (a *attached) started(number uint64, g process.Generation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.condition.tries = max(a.condition.tries, number)
	if g != nil {
		a.condition.last = g
	}
}

// health is what the endpoint is at, in a host that is at what is given.
func (a *attached) health(host Health) EndpointHealth {
	a.mu.Lock()
	c := a.condition
	a.mu.Unlock()
	p := a.outbox.Counts()
	out := EndpointHealth{
		Name: a.endpoint.name, Transport: a.plugin(), Optional: a.endpoint.plugin.Optional,
		State: c.state, Since: c.since, Reason: c.reason,
		Generation: c.generation, Restarts: max(c.tries, 1) - 1,
		Published:     Published{Confirmed: p.Confirmed, Refused: p.Refused, Unknown: p.Unknown, Missing: p.Missing},
		Subscriptions: []SubscriptionHealth{},
	}
	if c.last != nil {
		out.Stderr = c.last.Stderr()
	}
	for _, s := range a.subs {
		out.Subscriptions = append(out.Subscriptions, s.health(&out, &c, host))
	}
	return out
}

// health is what the subscription is at, on an endpoint and in a host that are
// at what is given.
func (s *subscribed) health(on *EndpointHealth, c *condition, host Health) SubscriptionHealth {
	lane, lost := s.lane.State(), s.lostFor()
	out := SubscriptionHealth{
		Name: s.sub.name, State: SubscriptionOpen, Counters: countersOf(s.lane.Counters()),
		Since: latest(lane.Since, on.Since, host.Since),
	}
	if s.hooks != nil {
		out.Hooks = int(s.hooks.waiting()) //nolint:gosec // of what is in memory
	}
	down := func(since time.Time, reason string) {
		out.State, out.Since, out.Reason = SubscriptionDown, since, shorten(reason)
	}
	stops := host.State == StateStopping || host.State == StateStopped
	switch {
	case lane.Ended && lane.Fault == nil && (!stops || s.ended.Load()):
		out.State, out.Since = SubscriptionEnded, lane.Since
	case lost != nil:
		down(lane.Since, lost.Error())
	case stops:
		out.State, out.Since = SubscriptionStopped, s.on.run.host.stopped()
	case c.generation == 0:
		out.State, out.Since, out.Reason = SubscriptionWaiting, lane.Since, on.Reason
	case host.State == StateStarting:
		out.State, out.Since = SubscriptionWaiting, host.Since
	case lane.Ended:
		down(lane.Since, lane.Fault.Error())
	case c.state != EndpointUp:
		down(c.fell, on.Reason)
	case !lane.Attached:
		down(lane.Since, "its stream has ended")
	case lane.Paused:
		out.State = SubscriptionPaused
	case lane.Circuit != settlement.CircuitClosed:
		out.State, out.Reason = SubscriptionTripped, "its circuit breaker is "+lane.Circuit.String()
	case lane.CaughtUp:
		out.State = SubscriptionCaughtUp
	}
	return out
}

// latest returns the latest of times.
func latest(ts ...time.Time) time.Time {
	var last time.Time
	for _, t := range ts {
		if t.After(last) {
			last = t
		}
	}
	return last
}
