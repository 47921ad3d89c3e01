// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// routesKept is how many destinations that only a delivery names a subscription
// remembers: more than services have queues for retries and replies, little
// enough to forget all at once.
const routesKept = 1024

// nameKept is how long a name is remembered, as that a message brings may be of any
// length; those of brokers are shorter, and one that is longer is asked for again.
const nameKept = 1 << 10

// routes finds the routes to destinations that the start did not know, for one
// purpose.
type routes struct {
	s       *subscribed
	purpose transportpb.Purpose

	mu    sync.Mutex
	known map[core.Destination]knownRoute
}

// knownRoute is a route, or why there is none.
type knownRoute struct {
	route core.Route
	err   error
}

// to returns the route to a destination; one that nothing can carry is refused,
// with the reason.
func (c *routes) to(d core.Destination) (core.Route, error) {
	c.mu.Lock()
	known, ok := c.known[d]
	c.mu.Unlock()
	if ok {
		return known.route, known.err
	}
	route, lasting, err := c.ask(d)
	if lasting && len(d.Name) <= nameKept {
		c.mu.Lock()
		if c.known == nil || len(c.known) >= routesKept {
			c.known = make(map[core.Destination]knownRoute)
		}
		c.known[d] = knownRoute{route, err}
		c.mu.Unlock()
	}
	return route, err
}

// ask asks the destination's plugin. What it answered is lasting.
func (c *routes) ask(to core.Destination) (route core.Route, lasting bool, err error) {
	a := c.s.on.run.byName[to.Endpoint]
	if a == nil {
		return core.Route{To: to, State: core.RouteRefused}, true, fmt.Errorf("the endpoint of %v is not attached", to)
	}
	target := &transportpb.Target{Name: to.Name, Purpose: c.purpose}
	if a == c.s.on && c.purpose == transportpb.Purpose_PURPOSE_RETRY {
		target.For = []uint32{c.s.id}
	}
	route, lasting, err = a.ask(context.Background(), target)
	route.Own = a == c.s.on
	return route, lasting, err
}

// ask asks the plugin about a destination that the start did not know. Without
// an answer the endpoint's widest abilities are taken, and the publish will
// tell. It waits no longer than ctx and the start limit.
func (a *attached) ask(ctx context.Context, target *transportpb.Target) (route core.Route, lasting bool, err error) {
	route = core.Route{
		To:    core.Destination{Endpoint: a.endpoint.name, Name: target.GetName()},
		Caps:  convert.ToPublishing(a.spec.GetPublishing()),
		State: core.RouteOpen, Restarts: a.restarts(),
	}
	g := a.current()
	if g == nil {
		return route, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.run.opts.startLimit)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
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
	route, _, _ := a.ask(context.Background(), &transportpb.Target{Name: c.To.Name, Purpose: p})
	route.Own = c.Endpoint == c.To.Endpoint
	return route
}
