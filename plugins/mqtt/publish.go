// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// Publish sends messages in order.
func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	for i := range msgs {
		if f := c.post(&msgs[i], i, done); f != nil {
			done(i, pluginapi.Refused(f))
		}
	}
	c.main.Outbox().Flush()
}

func (c *conn) post(m *pluginapi.Outgoing, i int, done func(int, pluginapi.Receipt)) *core.Fault {
	var o settings.PublishOptions
	if err := m.Options.Bind(&o); err != nil {
		return faultOf("publish", err)
	}
	if f := message.Check(&m.Message); f != nil {
		return f
	}
	return c.main.Outbox().Add(&outbox.Post{Message: m.Message, QoS: byte(*o.QoS), Retain: o.Retain, Done: done, I: i})
}

// Request is not offered.
func (c *conn) Request(context.Context, pluginapi.Outgoing) (core.Message, error) {
	return core.Message{}, &core.Fault{Code: core.FaultUnsupported, Message: "request"}
}
