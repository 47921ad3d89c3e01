// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Publish sends messages in order and waits for nobody. A receipt is confirmed at
// QoS 1 and 2 when the server has the message (PUBACK, PUBCOMP; D14), at QoS 0
// when the operating system has it.
//
// Copies and dead letters leave with the QoS of their delivery, at least 1, over the
// connection that it came on; copies with what is left of its expiry (D19).
func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	var used *outbox.Outbox
	for i := range msgs {
		out, f := c.publish(&msgs[i], i, done)
		if f != nil {
			done(i, pluginapi.Refused(f))
			continue
		}
		if used != nil && used != out {
			used.Flush()
		}
		used = out
	}
	if used != nil {
		used.Flush()
	}
}

// publish adds one message to the outbox that it returns. Unless it returns a
// fault done is called.
func (c *conn) publish(m *pluginapi.Outgoing, i int, done func(int, pluginapi.Receipt)) (*outbox.Outbox, *core.Fault) {
	o, err := c.options.of(m.Options)
	if err != nil {
		return nil, faultOf(fault.PublishTo(m.Message.Name), err)
	}
	p := outbox.Post{Done: done, I: i}
	if f := fill(&p, m, o); f != nil {
		return nil, f
	}
	out, check := c.main.Outbox(), message.Check
	if origin := c.origin(m, &p); origin != nil {
		out, check = origin.Outbox(), message.CheckCopy
		stem(&p, m, o)
	}
	if f := check(&m.Message); f != nil {
		return nil, f
	}
	return out, out.Add(&p)
}

// fill sets what options say.
func fill(p *outbox.Post, m *pluginapi.Outgoing, o *settings.PublishOptions) *core.Fault {
	if wrong := badPublishOptions(o); len(wrong) > 0 {
		return &core.Fault{Code: core.FaultInvalid, Message: fault.PublishTo(m.Message.Name), Diagnostics: wrong}
	}
	p.Message, p.QoS, p.Retain = m.Message, byte(*o.QoS), o.Retain
	if o.ContentType != "" {
		p.ContentType = []byte(o.ContentType)
	}
	if o.Expiry != 0 {
		p.Deadline = time.Now().Add(time.Duration(o.Expiry)).UnixMilli()
	}
	return nil
}

// origin is the connection of the delivery that a copy or dead letter stems from,
// nil where it is none, or of another process.
func (c *conn) origin(m *pluginapi.Outgoing, p *outbox.Post) *connection {
	if m.Purpose != pluginapi.PurposeRetry && m.Purpose != pluginapi.PurposeDeadLetter {
		return nil
	}
	p.Copy = true
	from, ok := carry.Parse(m.Carry)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.connections {
		if o.Instance() == from.Instance {
			p.Carry, p.Carried = from, true
			return o
		}
	}
	return nil
}

// stem sets what a copy has from its delivery, where no option says otherwise. A
// dead letter waits for people, and does not expire.
func stem(p *outbox.Post, m *pluginapi.Outgoing, o *settings.PublishOptions) {
	if m.Options.IsEmpty() {
		p.QoS = max(p.Carry.QoS, 1)
	}
	if m.Purpose == pluginapi.PurposeRetry && o.Expiry == 0 {
		p.Deadline = p.Carry.Deadline
	}
}
