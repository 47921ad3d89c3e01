// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"
	"errors"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// The headers that make a message a request (OASIS MQTT 5.0, 4.10).
const (
	headerReplyTo     = "reply-to"
	headerCorrelation = "correlation-id"
)

// Request publishes a request and waits for its reply until ctx ends, over
// reconnects too. reply-to is the endpoint's own topic, correlation-id is kept, or
// made where there is none. The first reply counts. Where the server says that
// nobody has subscribed it is FaultNotFound at once; the end of ctx is FaultTimeout
// or FaultCanceled. It may be called from many goroutines; 1024 wait at a time at
// most.
func (c *conn) Request(ctx context.Context, m pluginapi.Outgoing) (core.Message, error) {
	reply, f := c.request(ctx, &m)
	if f != nil {
		return core.Message{}, asRequest(m.Message.Name, f)
	}
	return reply, nil
}

// asRequest makes a fault one of a request.
func asRequest(name string, f *core.Fault) *core.Fault {
	c := *f
	doing := strings.TrimPrefix(fault.PublishTo(name), "publish to ")
	c.Message = "request to " + doing + ": " + strings.TrimPrefix(f.Message, fault.PublishTo(name)+": ")
	return &c
}

func (c *conn) request(ctx context.Context, m *pluginapi.Outgoing) (core.Message, *core.Fault) {
	p, f := c.asPost(m)
	if f != nil {
		return core.Message{}, f
	}
	if f := c.requests.open(ctx); f != nil {
		return core.Message{}, f
	}
	w, f := c.requests.enter(&p.Message)
	if f != nil {
		return core.Message{}, f
	}
	defer c.requests.leave(w)
	p.Done = func(_ int, receipt pluginapi.Receipt) { w.receipt <- receipt }
	if f := c.main.Outbox().Add(p); f != nil {
		return core.Message{}, f
	}
	c.main.Outbox().Flush()
	return w.wait(ctx)
}

// asPost checks a request and makes it ready to be published. It shares no memory
// with the caller, who does not wait for its receipt.
func (c *conn) asPost(m *pluginapi.Outgoing) (*outbox.Post, *core.Fault) {
	var o settings.PublishOptions
	if err := m.Options.Bind(&o); err != nil {
		return nil, faultOf(fault.PublishTo(m.Message.Name), err)
	}
	p := new(outbox.Post)
	if f := fill(p, m, &o); f != nil {
		return nil, f
	}
	p.Message.Headers = m.Message.Headers.Without(headerReplyTo)
	if f := message.Check(&p.Message); f != nil {
		return nil, f
	}
	p.Message = p.Message.Clone()
	return p, nil
}

// waiter is a request that waits for its reply.
type waiter struct {
	id      string
	receipt chan pluginapi.Receipt // has room for the only one
	reply   chan core.Message      // has room for one
	ended   chan *core.Fault       // has room for one: there will be none
}

// wait waits for the reply. A receipt says something only where nobody can have
// got the request.
func (w *waiter) wait(ctx context.Context) (core.Message, *core.Fault) {
	var f *core.Fault
	for f == nil {
		select {
		case m := <-w.reply:
			return m, nil
		case r := <-w.receipt:
			f = hopeless(r)
		case f = <-w.ended:
		case <-ctx.Done():
			f = late(ctx)
		}
	}
	select {
	case m := <-w.reply: // it came before the end
		return m, nil
	default:
		return core.Message{}, f
	}
}

// hopeless is why no reply can come after a receipt, nil where one can.
func hopeless(r pluginapi.Receipt) *core.Fault {
	switch {
	case r.Status == pluginapi.ReceiptRefused:
		return r.Fault
	case r.Unrouted:
		return fault.Passing(core.FaultNotFound, "start the responder, or correct the topic", "nobody has subscribed to it")
	}
	return nil
}

// late is the fault of a request whose time is over.
func late(ctx context.Context) *core.Fault {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Passing(core.FaultTimeout, "allow more time, or start more responders", "no reply came in time")
	}
	return fault.Refusal(core.FaultCanceled, "canceled before the reply came")
}
