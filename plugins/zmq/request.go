// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
	f := c.unusable(s, doing)
	if f == nil {
		f = s.badRequest(&m)
	}
	if f != nil {
		return core.Message{}, f
	}
	reply, f := s.dealer.request(ctx, &m.Message)
	if f != nil {
		return core.Message{}, asRequest(m.Message.Name, f)
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
	if f := e.unfit(m); f != nil {
		return asRequest(m.Message.Name, f)
	}
	return nil
}

// asRequest is why a message was not sent, as the fault of a request.
func asRequest(name string, f *core.Fault) *core.Fault {
	c := *f
	c.Message = strings.TrimPrefix(f.Message, fault.PublishTo(name)+": ")
	return faultOf("request to "+shown(name), &c)
}

// request sends m and waits for its reply.
func (d *dealer) request(ctx context.Context, m *core.Message) (core.Message, *core.Fault) {
	id, out := d.identify(m)
	r, f := d.register(id)
	if f != nil {
		return core.Message{}, f
	}
	defer d.forget(id, r)
	for {
		failed, f := d.send(ctx, r, out)
		if f != nil {
			return core.Message{}, f
		}
		reply, again, f := d.await(ctx, r, failed)
		if !again {
			return reply, f
		}
	}
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

// send gives a request to a peer. What is returned tells when it could not be
// sent to it; a reply tells that it was.
func (d *dealer) send(ctx context.Context, r *request, m *core.Message) (<-chan pluginapi.Receipt, *core.Fault) {
	ctx, cancel := sendLimit(ctx)
	defer cancel()
	failed := make(chan pluginapi.Receipt, 1)
	p, f := d.push.Send(ctx, m, outq.Ticket{Done: func(_ int, r pluginapi.Receipt) {
		if r.Status != pluginapi.ReceiptConfirmed {
			failed <- r
		}
	}})
	if f != nil {
		return nil, d.unsent(f)
	}
	d.given(r, p)
	return failed, nil
}

// sendReserve is kept of a request's time to tell that nobody could be sent it: who
// waits until the end has to take it that somebody was.
const sendReserve = 100 * time.Millisecond

// sendLimit bounds the time in which a request finds a peer, to all but a tenth.
func sendLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/10, sendReserve)))
}

// await waits for the reply. again says that the peer is gone and was not sent
// all of the request.
func (d *dealer) await(ctx context.Context, r *request, failed <-chan pluginapi.Receipt) (_ core.Message, again bool, f *core.Fault) {
	select {
	case m := <-r.reply:
		return m, false, nil
	case receipt := <-failed:
		again, f = d.notSent(r, receipt)
	case f = <-r.ended:
		select {
		case receipt := <-failed: // it says more than that the peer is lost
			again, f = d.notSent(r, receipt)
		default:
		}
	case <-ctx.Done():
		f = late(ctx)
	}
	select {
	case m := <-r.reply: // it came before the end
		return m, false, nil
	default:
	}
	return core.Message{}, again, f
}

// notSent reads the receipt of a request that was not sent, or not whole.
func (d *dealer) notSent(r *request, receipt pluginapi.Receipt) (again bool, _ *core.Fault) {
	if receipt.Status == pluginapi.ReceiptRefused && receipt.Fault.Transient {
		d.takeBack(r)
		return true, nil
	}
	return false, receipt.Fault
}

// late is the fault of a request whose time is over.
func late(ctx context.Context) *core.Fault {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Passing(core.FaultTimeout, "allow more time, or start more responders", "no reply came in time")
	}
	return fault.Refusal(core.FaultCanceled, "canceled before the reply came")
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
	return fault.Passing(core.FaultNotFound, "start the responder, or correct the address",
		"no responder is connected at %s, and the request was not sent", d.place())
}
