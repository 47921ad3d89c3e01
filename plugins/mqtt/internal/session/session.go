// SPDX-License-Identifier: Apache-2.0

// Package session joins the parts of one MQTT session: the connections of a
// client, what is published over them, what is received, and the filters that are
// subscribed to (ADR 0114).
package session

import (
	"context"
	"errors"
	"log/slog"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// Config is what a session needs.
type Config struct {
	Client client.Config // its Handler is the session
	Intake intake.Config // its Instance is the session's
	Outbox outbox.Config // its Returns is the session's intake's

	// Kept says that the session outlives this process, as far as the server allows
	// it: clean start is off, and there is a session expiry.
	Kept bool
	// State is told of each connection that is up, and why one is lost. It does not
	// block. Default: nobody is.
	State func(up bool, reason string)
	Log   *slog.Logger // nil = nothing is logged
}

// Session is one session with a server, over all its connections.
type Session struct {
	c        Config
	instance carry.Instance
	client   *client.Client
	in       *intake.Intake
	out      *outbox.Outbox
	subs     *subscriptions
	limits   limits
}

// New returns a session that is not connected.
func New(c Config) *Session {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.State == nil {
		c.State = func(bool, string) {}
	}
	s := &Session{c: c, instance: carry.NewInstance(), subs: newSubscriptions(c.Log)}
	c.Intake.Instance = s.instance
	s.in = intake.New(c.Intake)
	c.Outbox.Returns = s.in.Returns
	s.out = outbox.New(c.Outbox)
	c.Client.Handler = (*handler)(s)
	s.client = client.New(c.Client)
	return s
}

// Instance is what carries of its deliveries are marked with.
func (s *Session) Instance() carry.Instance { return s.instance }

// Outbox is where it publishes.
func (s *Session) Outbox() *outbox.Outbox { return s.out }

// Start connects. What passes is tried again until ctx ends; the error is a
// *core.Fault.
func (s *Session) Start(ctx context.Context) error { return s.client.Start(ctx) }

// Route is a filter of a session. What comes for it is kept from here on.
type Route struct {
	session *Session
	route   *intake.Route
	sub     *sub
}

// Route makes a filter known. All that may be in a session that was kept are made
// known before Start; no two have the same filter on the wire.
func (s *Session) Route(f Filter) *Route {
	wire := f.Wire()
	rt := s.in.Route(intake.Filter{Wire: wire, Filter: f.Name, Identifier: topic.Identifier(wire), QoS: f.QoS})
	return &Route{session: s, route: rt, sub: s.subs.declare(f, rt)}
}

// Subscribe waits until the server has granted the filter, and returns who receives
// what comes for it from here on, under a name for people, with the QoS that was
// granted. It may be called again: those that are open take turns. Where the
// server refuses it, or ctx ends, the error is a *core.Fault.
func (r *Route) Subscribe(ctx context.Context, name string) (*intake.Receiver, byte, error) {
	if f := r.session.subs.subscribe(ctx, r.sub); f != nil {
		return nil, 0, f
	}
	return r.route.Open(name), r.session.subs.qos(r.sub), nil
}

// Leave takes the filter back, unless the session is kept: then the server goes on
// collecting for it, and one that it has never granted is not asked for any more. It is called when the last who received for it is closed.
func (r *Route) Leave() {
	if r.session.c.Kept {
		r.session.subs.abandon(r.sub)
	} else {
		r.session.subs.unsubscribe(r.sub)
	}
}

// Forget ends the route for good.
func (r *Route) Forget() {
	r.session.subs.unsubscribe(r.sub)
	r.session.subs.remove(r.sub)
	r.route.Remove()
}

// Kept reports whether the session outlives this process, as the server of the last
// connection said.
func (s *Session) Kept() bool { return s.c.Kept && s.limits.get().SessionExpiry > 0 }

// ResponseInformation is how reply topics begin, as the server wants it; "" where
// it does not say.
func (s *Session) ResponseInformation() string { return s.limits.get().ResponseInformation }

// Close ends the intake, waits until what was published has its answer, and takes
// its leave, within ctx. Where abandoned says that nobody asks for answers any more,
// it does not wait for them: on another connection it would take the session from
// the next who begins with it. Then the server publishes the will.
func (s *Session) Close(ctx context.Context, abandoned bool) error {
	s.subs.end(fault.Closed("subscribe"))
	var err error
	if abandoned {
		s.out.Fail(fault.Closed("publish"))
		err = s.client.CloseWithWill(ctx)
	}
	err = errors.Join(err, s.out.Close(ctx))
	if !abandoned {
		err = errors.Join(err, s.client.Close(ctx))
	}
	s.in.Close()
	return err
}

// handler is the session as its client sees it.
type handler Session

// Up tells what became of deliveries first, then subscribes, then sends what has
// no answer, and only then is the session said to be up. A copy that was to go to
// what this session reads itself, and to nobody else, would find nobody before.
func (h *handler) Up(l *client.Link) {
	server := l.Server()
	h.limits.set(server)
	l.OnWritten(func() { h.out.Wrote(l) })
	h.in.Up(l, intake.Session{Present: l.Present(), Kept: h.c.Kept && server.SessionExpiry > 0})
	h.subs.up(l, l.Present(), server)
	h.out.Up(l, outbox.Server{
		Present: l.Present(), ReceiveMaximum: int(server.ReceiveMaximum), MaximumQoS: server.MaximumQoS,
		NoRetain: !server.Retain, MaxPacket: int(server.MaxPacket),
	})
	h.c.State(true, "")
}

// Packet takes one packet. What the server must not send ends the connection.
func (h *handler) Packet(l *client.Link, p *packet.Packet) {
	var err error
	switch p.Type {
	case packet.TypePuback, packet.TypePubrec, packet.TypePubcomp:
		var a packet.Ack
		if err = packet.ParseAck(p, &a); err == nil {
			err = h.out.Ack(l, p.Type, &a)
		}
	case packet.TypeSuback, packet.TypeUnsuback:
		var a *packet.Suback
		if a, err = packet.ParseSuback(p); err == nil {
			err = h.subs.acked(p.Type, a)
		}
	default:
		err = h.in.Packet(l, p)
	}
	if err != nil {
		l.End(err, codeOf(err))
	}
}

// codeOf is what a server is told that an error is about.
func codeOf(err error) byte {
	if p, ok := errors.AsType[*packet.ProtocolError](err); ok {
		return p.Code
	}
	return packet.CodeProtocolError
}

// Handled wakes who waits for what was read.
func (h *handler) Handled(l *client.Link, r *packet.Reader) {
	h.in.Handled(l, r)
	h.out.Flush()
}

// Down says that the session has no connection.
func (h *handler) Down(l *client.Link, err error) {
	h.subs.down()
	h.out.Down(l, endOf(err))
	h.in.Down(l)
	if !errors.Is(err, client.ErrClosed) {
		h.c.State(false, err.Error())
	}
}

// Fatal ends everything with the reason.
func (h *handler) Fatal(f *core.Fault) {
	h.c.State(false, f.Error())
	h.subs.end(f)
	h.out.Fail(f)
	h.in.Fail(f)
}
