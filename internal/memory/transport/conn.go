// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/wire"
	"github.com/longshore-go/longshore/pluginapi"
)

// conn is the connected endpoint.
type conn struct {
	endpoint *endpoint
	link     *link
}

// Subscribe opens a registration at the broker.
func (c *conn) Subscribe(ctx context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	if err := c.link.at(ctx, memory.AtSubscribe, r.Name); err != nil {
		return nil, err
	}
	src := c.endpoint.settings.Source(r.Name)
	s := newSubscription(c.link, r.Name, capabilities(r.Name, src.Started), !src.NoIdentity)
	c.link.mu.Lock()
	c.link.numbers++
	s.number = c.link.numbers
	c.link.subs[s.number] = s
	c.link.mu.Unlock()
	if _, err := c.link.call(ctx, s.opening()); err != nil {
		c.link.mu.Lock()
		delete(c.link.subs, s.number)
		c.link.mu.Unlock()
		return nil, asFault(err)
	}
	return s.wrap(src), nil
}

// Request asks a responder of the broker.
func (c *conn) Request(ctx context.Context, m pluginapi.Outgoing) (core.Message, error) {
	it := wire.Item{Kind: uint8(m.Purpose), Name: m.Message.Name, Headers: m.Message.Headers, Payload: m.Message.Payload}
	if !m.Options.IsEmpty() {
		it.Options = m.Options.JSON()
	}
	answer, err := c.link.call(ctx, &wire.Frame{Kind: wire.Request, Items: []wire.Item{it}})
	if err != nil {
		return core.Message{}, asFault(err)
	}
	if len(answer.Items) != 1 {
		return core.Message{}, &core.Fault{Code: core.FaultInternal, Message: "request: an answer without a message"}
	}
	got := answer.Items[0]
	return core.Message{Name: got.Name, Headers: got.Headers, Payload: got.Payload}, nil
}

// ReportLink reports every loss and return of the connection.
func (c *conn) ReportLink(report func(pluginapi.LinkState)) {
	c.link.mu.Lock()
	c.link.linked = report
	up := c.link.conn != nil
	c.link.mu.Unlock()
	if up {
		report(pluginapi.LinkState{Up: true})
	}
}

// ReportResume reports the name of the session.
func (c *conn) ReportResume(keep func([]byte)) {
	c.link.mu.Lock()
	c.link.resumed = keep
	c.link.mu.Unlock()
	keep(c.link.session())
}

// Close waits for the receipts of what was published, as long as ctx allows.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	err := c.link.at(ctx, memory.AtClose, "")
	c.link.flush(ctx)
	if ctx.Err() == nil {
		// Whether the broker hears the farewell changes nothing.
		_, _ = c.link.call(ctx, &wire.Frame{Kind: wire.Bye})
	}
	session := c.link.session()
	c.link.stop()
	return session, err
}
