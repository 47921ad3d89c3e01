// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

// conn is the connected endpoint.
type conn struct {
	endpoint *endpoint
	log      *slog.Logger
	intake   *intake
	writer   *writer

	mu   sync.Mutex
	link func(pluginapi.LinkState)
	down string // why, "" = up
}

// Subscribe opens a key.
func (c *conn) Subscribe(_ context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	if !streamkey.Valid(r.Name) {
		return nil, keyFault("subscribe", r.Name)
	}
	return c.intake.subscribe(c, r.Name)
}

// Publish prints messages in order, or brings them back to a subscription. A
// receipt is confirmed when the line's last byte is with the operating system,
// or its looped copy in the subscription's stream.
func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	for i := range msgs {
		m := &msgs[i]
		answer := func(r pluginapi.Receipt) { done(i, r) }
		looped, f := false, c.refuses(m)
		if f == nil && c.endpoint.settings.Loopback {
			looped, f = c.intake.loop(m.Message, m.Purpose, answer)
		}
		switch {
		case f != nil:
			answer(pluginapi.Refused(f))
		case !looped:
			c.print(m, answer)
		}
	}
}

// refuses says why a message can neither be printed nor come back.
func (c *conn) refuses(m *pluginapi.Outgoing) *core.Fault {
	switch {
	case !streamkey.Valid(m.Message.Name):
		return keyFault("publish", m.Message.Name)
	case m.DeliverAfter > 0:
		return fault.Refusal(core.FaultUnsupported, "publish under %s: a pipe delivers nothing later", m.Message.Name)
	case len(m.Message.Headers) > MaxPublishHeaders:
		return fault.Refusal(core.FaultTooLarge, "publish under %s: %d headers, the limit is %d", m.Message.Name, len(m.Message.Headers), MaxPublishHeaders)
	case m.Message.Size() > MaxPublish:
		return fault.Refusal(core.FaultTooLarge, "publish under %s: payload and headers of %d bytes, the limit is %d",
			m.Message.Name, m.Message.Size(), MaxPublish)
	}
	return nil
}

// print hands a message to the writer. What an application publishes leaves the
// number behind that this transport put onto the delivery: the next reader
// numbers it anew, and a message without headers of its own stays a plain line.
// Copies and dead letters keep it, as in the reference; an empty payload does,
// since it could not be printed without any header.
func (c *conn) print(m *pluginapi.Outgoing, answer func(pluginapi.Receipt)) {
	message := m.Message
	if m.Purpose == pluginapi.PurposeApplication && len(message.Payload) > 0 {
		message.Headers = envelope.WithoutSequence(message.Headers)
	}
	if f := c.writer.put(message, m.Purpose, answer); f != nil {
		answer(pluginapi.Refused(f))
	}
}

// broken ends the intake when nothing can be printed any more.
func (c *conn) broken(f *core.Fault) {
	c.intake.fail(f)
	c.mu.Lock()
	c.down = f.Message
	link := c.link
	c.mu.Unlock()
	if link != nil {
		link(pluginapi.LinkState{Reason: f.Message})
	}
}

// ReportLink reports the loss of the output.
func (c *conn) ReportLink(report func(pluginapi.LinkState)) {
	c.mu.Lock()
	c.link = report
	down := c.down
	c.mu.Unlock()
	report(pluginapi.LinkState{Up: down == "", Reason: down})
}

// Close stops reading and prints what was accepted, as long as ctx allows.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	return nil, errors.Join(c.intake.close(ctx), c.writer.close(ctx))
}
