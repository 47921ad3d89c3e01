// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// closeLimit is the limit of a Close whose request names none.
const closeLimit = 10 * time.Second

// shutting is the one end of an endpoint, by Close or because the host is gone.
type shutting struct {
	hurry context.CancelFunc // ends the time that is left
	done  chan struct{}      // closed when it is over
}

// Close stops intake, lets given verdicts and accepted publishes through, closes
// the connection and answers with its resume bytes. What is not done within the
// limit is given up: missing receipts are UNKNOWN then. A host that dies
// meanwhile does not cut it short, see abandon.
func (s *server) Close(ctx context.Context, r *transportpb.CloseRequest) (*transportpb.CloseResponse, error) {
	limit := time.Duration(r.GetLimit())
	if limit <= 0 {
		limit = closeLimit
	}
	limited, hurry := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer hurry()
	end, first := s.beginShut(hurry)
	if !first {
		return nil, closedFault("close")
	}
	defer close(end.done)
	resume, err := s.shut(limited, true, closeGrace)
	if err != nil {
		return nil, err
	}
	if len(resume) > maxResume {
		return nil, newFault(core.FaultTooLarge, "close: %d resume bytes, the limit is %d", len(resume), maxResume)
	}
	return &transportpb.CloseResponse{Resume: resume}, nil
}

// beginShut returns the end of the endpoint, and whether the caller is the one
// to carry it out.
func (s *server) beginShut(hurry context.CancelFunc) (*shutting, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shutting != nil {
		return s.shutting, false
	}
	s.shutting = &shutting{hurry: hurry, done: make(chan struct{})}
	s.closed = true
	return s.shutting, true
}

// abandon ends the endpoint of a host that is gone: nothing is received any
// more, no verdict is carried out, accepted publishes are flushed as far as ctx
// lets them. It returns when the connection is closed or ctx has ended. A Close
// that is under way goes on until then.
func (s *server) abandon(ctx context.Context) { s.abandonWithin(ctx, closeGrace) }

// abandonWithin is abandon with the time that the transport's Close may take
// behind ctx to return.
func (s *server) abandonWithin(ctx context.Context, grace time.Duration) {
	limited, hurry := context.WithCancel(context.WithValue(ctx, hostGone{}, true))
	defer hurry()
	end, first := s.beginShut(hurry)
	s.mu.Lock()
	for _, x := range s.subs {
		x.cancel()
	}
	s.mu.Unlock()
	if first {
		defer close(end.done)
		if _, err := s.shut(limited, false, grace); err != nil {
			s.log.Warn("close endpoint", "error", err)
		}
		return
	}
	select {
	case <-end.done:
		return
	case <-ctx.Done():
	}
	end.hurry()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-end.done:
	case <-late.C:
	}
}

// shut closes the connection with all that is under way. verdicts says whether
// those that were given are carried out first.
func (s *server) shut(ctx context.Context, verdicts bool, grace time.Duration) ([]byte, error) {
	defer s.end()
	killed := ctx.Err() != nil       // nobody expects a flush
	if s.take(ctx, "close") == nil { // a Connect under way is waited for
		defer s.give()
	}
	s.mu.Lock()
	conn, pub := s.conn, s.publish
	subs := make([]*subscription, 0, len(s.subs))
	for _, x := range s.subs {
		subs = append(subs, x)
	}
	s.mu.Unlock()
	for _, x := range subs {
		x.stopIntake()
	}
	if pub != nil {
		pub.refuseMore()
		pub.await(pub.handedOver, ctx.Done())
	}
	for _, x := range subs {
		if verdicts {
			x.quiesce(ctx)
		}
		x.cutOff()
	}
	if conn == nil {
		return nil, nil
	}
	resume, err := s.closeConn(ctx, conn, grace, killed)
	if pub != nil {
		pub.settleAll()
		pub.await(pub.answered, ctx.Done())
	}
	return resume, err
}

// closeConn calls the transport's Close and waits for it no longer than ctx and
// a grace behind it. That of a generation that was killed flushes nothing.
func (s *server) closeConn(ctx context.Context, conn Conn, grace time.Duration, killed bool) ([]byte, error) {
	type answer struct {
		resume []byte
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		if f := contain(s.log, "Close", func() { a.resume, a.err = conn.Close(ctx) }); f != nil {
			a.err = f
		}
		done <- a
	}()
	answered := func(a answer) ([]byte, error) {
		if a.err != nil && ctx.Err() != nil && errors.Is(a.err, ctx.Err()) {
			// The limit came first: what is missing is unknown, and the next life
			// needs the resume bytes all the more.
			if !killed {
				s.log.Warn("the endpoint was closed at its limit, before everything was flushed")
			}
			return a.resume, nil
		}
		if a.err != nil {
			return nil, faultOf("close", a.err)
		}
		return a.resume, nil
	}
	select {
	case a := <-done:
		return answered(a)
	case <-ctx.Done():
	}
	// A transport that looks at its context is about to return.
	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case a := <-done:
		return answered(a)
	case <-last.C:
		return nil, newFault(core.FaultTimeout, "close: the transport does not return from Close")
	}
}

// closeGrace is what a Close may take beyond its limit to return.
const closeGrace = 100 * time.Millisecond

// quiesce waits until the given verdicts are carried out, or ctx ends.
func (x *subscription) quiesce(ctx context.Context) {
	for {
		x.mu.Lock()
		idle := len(x.runs) == 0 && !x.settling
		x.mu.Unlock()
		if idle {
			return
		}
		select {
		case <-x.idle:
		case <-x.settled:
			return
		case <-ctx.Done():
			return
		}
	}
}

// cutOff makes verdicts fail that come after the endpoint is closed.
func (x *subscription) cutOff() {
	x.mu.Lock()
	x.cut = true
	x.mu.Unlock()
}

// close closes the transport's subscription, whose stream has ended in order or
// not. A verdict that came after the endpoint was closed was not carried out.
func (x *subscription) close(finished bool) {
	x.mu.Lock()
	finished = finished && !x.cut
	x.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), x.server.options.AuthorLimit)
		defer cancel()
		if finished && x.powers.finisher != nil {
			_ = contain(x.log, "Finish", func() { x.powers.finisher.Finish(ctx, nil) })
		}
		var err error
		if f := contain(x.log, "Close", func() { err = x.sub.Close(ctx) }); f != nil {
			return
		}
		if err != nil {
			x.log.Warn("close subscription", "error", err)
		}
	}()
	x.await(done, "Close")
}

// Request publishes a request and waits for its reply.
func (s *server) Request(ctx context.Context, r *transportpb.RequestRequest) (*transportpb.RequestResponse, error) {
	d, conn, err := s.connected("request")
	if err != nil {
		return nil, err
	}
	requester, ok := conn.(Requester)
	if !ok || !d.spec.Requests {
		return nil, newFault(core.FaultUnsupported, "request: transport %s has no requests", d.spec.Name)
	}
	out := outgoing(r.GetOutgoing())
	check := publishCheck{spec: &d.spec, good: &s.goodOptions}
	if f := check.refuse(out, int64(frame.Weight(&out.Message))); f != nil {
		return nil, f
	}
	if t := time.Duration(r.GetTimeout()); t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t)
		defer cancel()
	}
	m := Outgoing{
		Message: out.Message, Purpose: known(out.Purpose), Carry: out.Carry, DeliverAfter: out.DeliverAfter,
		DedupID: out.DedupID, Options: Options{raw: out.Options, typ: d.spec.Publish.typ},
	}
	var reply core.Message
	if f := contain(s.log, "Request", func() { reply, err = requester.Request(ctx, m) }); f != nil {
		return nil, f
	}
	if err != nil {
		return nil, faultOf("request", err)
	}
	if size := frame.Weight(&reply); size > frame.MaxPayload {
		// Not FaultTooLarge, which says of a request that it was not sent.
		return nil, newFault(core.FaultExhausted, "request: the reply has %d bytes, the limit is %d", size, frame.MaxPayload)
	}
	return &transportpb.RequestResponse{Reply: convert.FromMessage(reply)}, nil
}

// outgoing reads a message to publish.
func outgoing(p *transportpb.Outgoing) *frame.Outgoing {
	m := &frame.Outgoing{
		ID: p.GetId(), Purpose: uint8(purpose(p.GetPurpose())), Carry: p.GetCarry(),
		DeliverAfter: time.Duration(p.GetDeliverAfter()), DedupID: p.GetDedupId(), Options: p.GetOptions(),
	}
	m.Message.Name, m.Message.Payload = p.GetName(), p.GetPayload()
	for _, h := range p.GetHeaders() {
		m.Message.Headers = append(m.Message.Headers, core.Header{Name: h.GetName(), Value: h.GetValue()})
	}
	return m
}
