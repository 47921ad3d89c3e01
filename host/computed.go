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
	"github.com/longshore-go/longshore/internal/transportpb"
)

// computedKept is how many computed destinations a subscription remembers: more
// than services have queues for retries, little enough to forget all at once.
const computedKept = 1024

// computed finds the routes to the destinations of a RetryToFunc.
type computed struct {
	s *subscribed

	mu    sync.Mutex
	known map[core.Destination]computedRoute
}

// computedRoute is a route, or why there is none.
type computedRoute struct {
	route core.Route
	err   error
}

func newComputed(s *subscribed) *computed {
	return &computed{s: s, known: make(map[core.Destination]computedRoute)}
}

// route asks the function and returns the route to what it named. A destination
// that nothing can carry is refused, with the reason.
func (c *computed) route(d *settlement.Delivery) (route core.Route, err error) {
	to, err := c.call(d)
	if err != nil {
		return core.Route{State: core.RouteRefused}, err
	}
	if to.Endpoint == "" {
		to.Endpoint = c.s.on.endpoint.name
	}
	c.mu.Lock()
	known, ok := c.known[to]
	c.mu.Unlock()
	if ok {
		return known.route, known.err
	}
	route, lasting, err := c.ask(to)
	if lasting {
		c.mu.Lock()
		if len(c.known) >= computedKept {
			clear(c.known)
		}
		c.known[to] = computedRoute{route, err}
		c.mu.Unlock()
	}
	return route, err
}

// call calls the user's function; what it throws is an error. The function has a
// goroutine of its own, which it may end without harm to the lane's.
func (c *computed) call(d *settlement.Delivery) (to core.Destination, err error) {
	err = errors.New("RetryToFunc ended its goroutine with runtime.Goexit")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if thrown := recover(); thrown != nil {
				err = fmt.Errorf("RetryToFunc: %w", &PanicError{Value: thrown})
			}
		}()
		to, err = c.s.rules().retryFunc(d.Message, d.Number)
	}()
	<-done
	if err == nil && to.Name == "" {
		err = fmt.Errorf("RetryToFunc named no destination")
	}
	if err != nil {
		return core.Destination{}, err
	}
	return to, nil
}

// ask asks the destination's plugin. What it answered is lasting.
func (c *computed) ask(to core.Destination) (route core.Route, lasting bool, err error) {
	a := c.s.on.run.byName[to.Endpoint]
	if a == nil {
		return core.Route{To: to, State: core.RouteRefused}, true, fmt.Errorf("the endpoint of %v is not attached", to)
	}
	target := &transportpb.Target{Name: to.Name, Purpose: transportpb.Purpose_PURPOSE_RETRY}
	if a == c.s.on {
		target.For = []uint32{c.s.id}
	}
	route, lasting, err = a.ask(target)
	route.Own = a == c.s.on
	return route, lasting, err
}

// ask asks the plugin about a destination that the start did not know. Without
// an answer the endpoint's widest abilities are taken, and the publish will
// tell.
func (a *attached) ask(target *transportpb.Target) (route core.Route, lasting bool, err error) {
	route = core.Route{
		To:    core.Destination{Endpoint: a.endpoint.name, Name: target.GetName()},
		Caps:  convert.ToPublishing(a.spec.GetPublishing()),
		State: core.RouteOpen, Restarts: a.restarts(),
	}
	g := a.current()
	if g == nil {
		return route, false, nil
	}
	ctx, cancel := context.WithTimeout(g.ctx, a.run.opts.startLimit)
	defer cancel()
	r, err := g.Link().Inspect(ctx, &transportpb.InspectRequest{
		Registrations: a.usage.request.Registrations, Destinations: []*transportpb.Target{target},
	})
	if err != nil || len(r.GetDestinations()) != 1 {
		return route, false, nil
	}
	t := r.GetDestinations()[0]
	for _, f := range t.GetFindings() {
		if !f.GetWarning() {
			route.State = core.RouteRefused
			return route, true, fmt.Errorf("%v: %s", route.To, f.GetMessage())
		}
	}
	route.Caps = convert.ToPublishing(t.GetPublishing())
	return route, true, nil
}

// routeOf returns the route of a copy that a former run stored.
func (r *run) routeOf(c settlement.Copy) core.Route {
	p := transportpb.Purpose(c.Purpose)
	a := r.byName[c.To.Endpoint]
	if a == nil {
		return core.Route{To: c.To, State: core.RouteRefused}
	}
	if t := r.target(c.To, p); t != nil {
		return core.Route{
			To: c.To, Caps: convert.ToPublishing(t.GetPublishing()), State: core.RouteOpen,
			Restarts: a.restarts(), Own: c.Endpoint == c.To.Endpoint,
		}
	}
	route, _, _ := a.ask(&transportpb.Target{Name: c.To.Name, Purpose: p})
	route.Own = c.Endpoint == c.To.Endpoint
	return route
}
