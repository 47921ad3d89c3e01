// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/session"
)

// conn is the connected endpoint.
type conn struct {
	endpoint *endpoint
	main     *connection // what the endpoint publishes over
	links    links
	options  publishOptions
	requests *requests

	turn sync.Mutex // held while a connection is opened that was not inspected

	mu          sync.Mutex // of what follows
	connections map[string]*connection
	closed      bool
}

// connection is one connection to the server, with its session.
type connection struct {
	*session.Session
	routes map[string]*route // by filter on the wire; under conn.mu
}

// route is a filter with those that receive what comes for it.
type route struct {
	*session.Route
	reader  reader
	members int // under conn.mu
}

// route returns the route of a reader, which is made where there is none.
func (o *connection) route(r *reader) *route {
	rt := o.routes[r.wire]
	if rt == nil {
		rt = &route{Route: o.Route(r.filter()), reader: *r}
		o.routes[r.wire] = rt
	}
	return rt
}

// all are the connections.
func (c *conn) all() []*connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*connection, 0, len(c.connections))
	for _, o := range c.connections {
		all = append(all, o)
	}
	return all
}

// Subscribe opens a subscription, and waits until the server has granted it. A
// connection that was not inspected is opened for it first.
func (c *conn) Subscribe(ctx context.Context, g pluginapi.Registration) (pluginapi.Subscription, error) {
	doing := "subscribe to " + shown(g.Name)
	r, found := readRegistration(&g)
	if len(found) > 0 {
		return nil, refused(doing, found)
	}
	o, err := c.connection(ctx, r.options.Connection)
	if err != nil {
		return nil, faultOf(doing, err)
	}
	rt, f := c.enter(o, &r)
	if f != nil {
		return nil, f
	}
	receiver, qos, err := rt.Subscribe(ctx, g.Name)
	if err != nil {
		c.leave(rt)
		return nil, err
	}
	return &subscription{Receiver: receiver, conn: c, connection: o, route: rt, reader: r, qos: int(qos)}, nil
}

// connection returns the connection with a name.
func (c *conn) connection(ctx context.Context, name string) (*connection, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.mu.Lock()
	o, closed := c.connections[name], c.closed
	c.mu.Unlock()
	if o != nil || closed {
		return o, nil
	}
	o, err := c.open(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	closed = c.closed
	if !closed {
		c.connections[name] = o
	}
	c.mu.Unlock()
	if closed {
		c.drop(name, o)
	}
	return o, nil
}

// enter makes a reader one of those of its filter.
func (c *conn) enter(o *connection, r *reader) (*route, *core.Fault) {
	doing := "subscribe to " + r.shown()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fault.Closed(doing)
	}
	for wire, rt := range o.routes {
		switch found := beside(&rt.reader, r); {
		case len(found) == 0:
		case rt.members > 0:
			return nil, refused(doing, found)
		default: // nobody reads it any more
			rt.Forget()
			delete(o.routes, wire)
		}
	}
	rt := o.route(r)
	rt.members++
	return rt, nil
}

// leave takes a reader out of those of its filter. The last one takes the filter
// back, where the session is not kept.
func (c *conn) leave(rt *route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rt.members--; rt.members == 0 && !c.closed {
		rt.Leave()
	}
}

// ReportLink reports whether all connections are up.
func (c *conn) ReportLink(report func(pluginapi.LinkState)) { c.links.report(report) }

// Close ends what waits for a reply, waits until what was published has its
// answer, and takes its leave of the server, within ctx. Where the host is gone
// the server publishes the will.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil, nil
	}
	c.requests.close()
	all := c.all()
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, o := range all {
		closing.Go(func() { errs[i] = o.Close(ctx, pluginapi.HostGone(ctx)) })
	}
	closing.Wait()
	err := errors.Join(errs...)
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("close endpoint %s: %w: %w", c.endpoint.name, ctx.Err(), err)
	}
	return nil, faultOf("close endpoint "+c.endpoint.name, err)
}

// refused is the fault of a registration that is refused.
func refused(doing string, found []pluginapi.Finding) *core.Fault {
	f := &core.Fault{Code: core.FaultInvalid, Message: doing}
	for i := range found {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: found[i].Option, Message: found[i].Message, Fix: found[i].Fix})
	}
	return f
}
