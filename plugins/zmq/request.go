// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Request sends a request to one of the peers and waits for its reply until ctx
// ends. Where no peer is connected within peer_wait nothing was sent
// (FaultNotFound); a peer that is lost after it was sent is FaultUnavailable at
// once, and the end of ctx FaultTimeout or FaultCanceled. It may be called from
// many goroutines; 1024 wait at a time at most.
func (c *conn) Request(ctx context.Context, m pluginapi.Outgoing) (core.Message, error) {
	doing := "request to " + shown(m.Message.Name)
	s := c.use()
	if s == nil {
		return core.Message{}, fault.Closed(doing)
	}
	f := s.badRequest(&m)
	if f != nil {
		return core.Message{}, f
	}
	reply, f := s.dealer.request(ctx, &m.Message)
	if f != nil {
		return core.Message{}, faultOf(doing, f)
	}
	return reply, nil
}

// badRequest says why a message cannot be a request here, nil where it can.
func (s *socket) badRequest(m *pluginapi.Outgoing) *core.Fault {
	e := s.endpoint
	doing := "request to " + shown(m.Message.Name)
	switch {
	case e.settings.Pattern != settings.PatternRPC:
		return fault.Refusal(core.FaultUnsupported, "%s: endpoint %s has the pattern %s, and only rpc has requests", doing, e.name, e.settings.Pattern)
	case s.dealer == nil:
		return fault.Refusal(core.FaultUnsupported, "%s: endpoint %s answers requests, for subscription %s; send them from another endpoint",
			doing, e.name, shown(s.reader))
	}
	if no := badName(m.Message.Name); no != nil {
		return no.fault(doing)
	}
	return e.unfit(m)
}

// request sends m and waits for its reply.
func (d *dealer) request(ctx context.Context, m *core.Message) (core.Message, *core.Fault) {
	id, out := d.identify(m)
	r, f := d.register(id)
	if f != nil {
		return core.Message{}, f
	}
	defer d.forget(id, r)
	for again := true; again; {
		if again, f = d.send(ctx, r, out); f != nil {
			return core.Message{}, f
		}
	}
	return r.await(ctx)
}

// identify returns the correlation id of a request, and the request with it.
func (d *dealer) identify(m *core.Message) (string, *core.Message) {
	if id, ok := m.Headers.Get(headerCorrelation); ok && len(id) > 0 {
		return string(id), m
	}
	const digits = 16
	id := fmt.Sprintf("%s%0*x", d.mint, digits, d.minted.Add(1))
	out := *m
	out.Headers = append(m.Headers.Without(headerCorrelation), core.Header{Name: headerCorrelation, Value: []byte(id)})
	return id, &out
}

// send gives a request to a peer. again says that the peer is gone and was sent
// nothing of it.
func (d *dealer) send(ctx context.Context, r *request, m *core.Message) (again bool, _ *core.Fault) {
	sent := make(chan pluginapi.Receipt, 1)
	p, f := d.push.Send(ctx, m, outq.Ticket{Done: func(_ int, r pluginapi.Receipt) { sent <- r }})
	if f != nil {
		return false, d.unsent(f)
	}
	d.given(r, p)
	select {
	case receipt := <-sent:
		switch {
		case receipt.Status == pluginapi.ReceiptConfirmed:
			return false, nil
		case receipt.Status == pluginapi.ReceiptRefused && receipt.Fault.Transient:
			d.takeBack(r)
			return true, nil
		}
		return false, receipt.Fault
	case <-ctx.Done():
		return false, late(ctx)
	}
}

// await waits for the reply.
func (r *request) await(ctx context.Context) (core.Message, *core.Fault) {
	select {
	case m := <-r.reply:
		return m, nil
	case f := <-r.ended:
		select {
		case m := <-r.reply: // it came before the end
			return m, nil
		default:
		}
		return core.Message{}, f
	case <-ctx.Done():
		return core.Message{}, late(ctx)
	}
}

// late is the fault of a request whose time is over.
func late(ctx context.Context) *core.Fault {
	f := &core.Fault{Code: core.FaultCanceled, Message: "canceled before the reply came"}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Code, f.Transient, f.Message = core.FaultTimeout, true, "no reply came in time"
	}
	return f
}

// unsent is the fault of a request that nobody was sent. Where nobody was there
// at all it says so, whatever ended first.
func (d *dealer) unsent(f *core.Fault) *core.Fault {
	d.mu.Lock()
	nobody := len(d.peers) == 0 && !d.closed
	d.mu.Unlock()
	if !nobody || f.Code == core.FaultClosed || f.Code == core.FaultCanceled {
		return f
	}
	return &core.Fault{
		Code: core.FaultNotFound, Transient: true,
		Message:     "no responder is connected at " + d.place + ", and the request was not sent",
		Diagnostics: []core.Diagnostic{{Fix: "start the responder, or correct the address"}},
	}
}
