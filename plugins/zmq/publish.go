// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// Publish sends messages in order. A receipt is confirmed when the operating
// system has the whole message, when it waits for its peers where it is a
// fan-out's or a reply, or when it is in the own subscription's queue. It waits for nobody:
// what finds no peer is answered later.
func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	s := c.use()
	for i := range msgs {
		f := c.unusable(s, fault.PublishTo(msgs[i].Message.Name))
		if f == nil {
			f = s.publish(&msgs[i], outq.Ticket{Done: done, I: i})
		}
		if f != nil {
			done(i, pluginapi.Refused(f))
		}
	}
}

// publish sends one message. Unless it returns a fault the ticket is answered.
func (s *socket) publish(m *pluginapi.Outgoing, t outq.Ticket) *core.Fault {
	if f := s.endpoint.unfit(m); f != nil {
		return f
	}
	w, no := s.endpoint.way(s.reader, m.Message.Name)
	if no == nil && w == wayRequest {
		no = requestsOnly(m.Message.Name)
	}
	if no != nil {
		return no.fault(fault.PublishTo(m.Message.Name))
	}
	switch {
	case w == wayOwn:
		if f := s.intake.Own(m.Message, m.Purpose); f != nil {
			return f
		}
		t.Done(t.I, pluginapi.Confirmed())
	case w == wayReply:
		to, _ := identity(strings.TrimPrefix(m.Message.Name, intake.ReplyScheme))
		s.router.Publish(to, &m.Message, t)
	case s.pub != nil:
		s.pub.Publish(&m.Message, t)
	default:
		s.push.Publish(&m.Message, t)
	}
	return nil
}

// unfit says why a message cannot be written, nil where it can.
func (e *endpoint) unfit(m *pluginapi.Outgoing) *core.Fault {
	doing, size := fault.PublishTo(m.Message.Name), m.Message.Size()
	switch {
	case m.DeliverAfter > 0:
		return fault.Refusal(core.FaultUnsupported, "%s: ZeroMQ delivers nothing later", doing)
	case int64(size) > e.settings.MaxMessage:
		return fault.Refusal(core.FaultTooLarge, "%s: payload and headers of %d bytes, the limit (max_message) is %d", doing, size, e.settings.MaxMessage)
	}
	return message.Check(&m.Message)
}
