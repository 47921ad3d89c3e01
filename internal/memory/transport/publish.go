// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/wire"
	"github.com/longshore-go/longshore/pluginapi"
)

// A frame of published messages holds at most so many, or one larger message.
const (
	publishItems = 256
	publishBytes = 4 << 20
)

// outgoing is a publish whose receipt is missing.
type outgoing struct {
	once sync.Once
	done func(pluginapi.Receipt)
}

func (o *outgoing) finish(r pluginapi.Receipt) { o.once.Do(func() { o.done(r) }) }

// Publish sends messages in order. When the receipt comes is what the
// destination confirms.
func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	c.link.panicAt(memory.PanicPublish)
	batch := &publishing{link: c.link}
	for i := range msgs {
		m := &msgs[i]
		p, _ := c.endpoint.settings.Destination(m.Message.Name).Publishing("")
		answer := func(r pluginapi.Receipt) { done(i, r) }
		headers, f := carried(m, p)
		if f != nil {
			answer(pluginapi.Refused(f))
			continue
		}
		batch.add(m, headers, p, answer)
	}
	batch.send()
}

// carried returns the headers that the destination takes, or why it takes the
// message not at all. A destination without headers drops them from dead
// letters, which must not be refused for a header, and refuses other messages.
func carried(m *pluginapi.Outgoing, p core.Publishing) (core.Headers, *core.Fault) {
	headers, bytes := m.Message.Headers, int64(len(m.Message.Payload))
	if p.Headers == core.HeadersNone && m.Purpose == pluginapi.PurposeDeadLetter {
		headers = nil
	}
	seen := map[string]bool{}
	for _, h := range headers {
		bytes += int64(len(h.Name) + len(h.Value))
		name := strings.ToLower(h.Name)
		switch {
		case p.Headers == core.HeadersNone:
			return nil, refusal(core.FaultUnsupported, "%s takes no headers", m.Message.Name)
		case p.Headers == core.HeadersNativeText && (!utf8.Valid(h.Value) || strings.ContainsAny(string(h.Value), "\r\n\x00")):
			return nil, refusal(core.FaultInvalid, "header %s is not one line of text", h.Name)
		case !p.Repeats && seen[name]:
			return nil, refusal(core.FaultInvalid, "header %s comes several times", h.Name)
		}
		seen[name] = true
	}
	switch {
	case p.MaxBytes > 0 && bytes > p.MaxBytes:
		return nil, refusal(core.FaultTooLarge, "message of %d bytes, the limit is %d", bytes, p.MaxBytes)
	case p.MaxHeaders > 0 && len(headers) > p.MaxHeaders:
		return nil, refusal(core.FaultTooLarge, "message with %d headers, the limit is %d", len(headers), p.MaxHeaders)
	case m.DeliverAfter > 0 && m.DeliverAfter >= p.MaxDelay:
		return nil, refusal(core.FaultUnsupported, "delivery after %v, the limit is %v", m.DeliverAfter, p.MaxDelay)
	}
	return headers, nil
}

func refusal(code core.FaultCode, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: "publish: " + fmt.Sprintf(format, args...)}
}

// publishing gathers one frame.
type publishing struct {
	link  *link
	frame wire.Frame
	outs  []*outgoing
	when  []core.Confirm
	size  int
}

func (b *publishing) add(m *pluginapi.Outgoing, headers core.Headers, p core.Publishing, answer func(pluginapi.Receipt)) {
	it := wire.Item{
		Kind: uint8(m.Purpose), Name: m.Message.Name, Headers: headers, Payload: m.Message.Payload,
		Carry: m.Carry, Text: m.DedupID, Dedup: p.Dedups, Dur: m.DeliverAfter, Retain: uint8(p.Retains),
	}
	if !m.Options.IsEmpty() {
		it.Options = m.Options.JSON()
	}
	if n := it.Size(); len(b.outs) > 0 && (b.size+n > publishBytes || len(b.outs) == publishItems) {
		b.send()
	}
	o := &outgoing{done: answer}
	b.link.mu.Lock()
	b.link.ids++
	it.ID = b.link.ids
	b.link.mu.Unlock()
	b.outs, b.when = append(b.outs, o), append(b.when, p.Confirms)
	b.frame.Items = append(b.frame.Items, it)
	b.size += it.Size()
}

// send sends the frame and answers what is confirmed by that alone.
func (b *publishing) send() {
	if len(b.outs) == 0 {
		return
	}
	l := b.link
	b.frame.Kind = wire.Publish
	l.mu.Lock()
	conn := l.conn
	if conn != nil {
		for i, o := range b.outs {
			if b.when[i] == core.ConfirmStored {
				l.publishes[b.frame.Items[i].ID] = o
			}
		}
	}
	l.mu.Unlock()
	for i, o := range b.outs {
		switch {
		case b.when[i] <= core.ConfirmQueued:
			defer o.finish(pluginapi.Confirmed())
		case conn == nil:
			o.finish(pluginapi.Receipt{Status: pluginapi.ReceiptRefused, Fault: unavailable("publish", errDown)})
		}
	}
	if conn != nil {
		err := l.write(conn, &b.frame)
		for i, o := range b.outs {
			switch {
			case err != nil:
				o.finish(pluginapi.Receipt{Status: pluginapi.ReceiptUnknown, Fault: unavailable("publish", err)})
			case b.when[i] == core.ConfirmHandedOver:
				o.finish(pluginapi.Confirmed())
			}
		}
	}
	b.frame, b.outs, b.when, b.size = wire.Frame{}, nil, nil, 0
	l.settleFlush()
}

// flush waits until no receipt is missing.
func (l *link) flush(ctx context.Context) {
	for {
		l.mu.Lock()
		missing, down := len(l.publishes), l.down
		if l.conn == nil {
			missing = 0
		}
		if missing > 0 && l.flushed == nil {
			l.flushed = make(chan struct{})
		}
		flushed := l.flushed
		l.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-flushed:
		case <-down:
		case <-ctx.Done():
			return
		}
	}
}

// settleFlush wakes a flush when the last receipt has come.
func (l *link) settleFlush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.publishes) == 0 && l.flushed != nil {
		close(l.flushed)
		l.flushed = nil
	}
}
