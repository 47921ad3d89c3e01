// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// order is the conversation of setup/order.
type order struct {
	t *Trial
	p *Process
}

// setupOrder makes every call where it does not belong.
func setupOrder(t *Trial) {
	o := &order{t, t.Start()}
	p := o.p
	for _, call := range []string{"Inspect", "Connect"} {
		o.refused(call, "before Configure", "Configure", o.call(call))
	}
	if fault := p.Configure(t.Settings); fault != nil {
		t.Fatalf("Configure refuses settings that it took before, behind calls out of order: %v", fault)
	}
	calls := []string{"Publish"}
	if t.About.reads() == "" {
		calls = append(calls, "Subscribe")
	}
	if t.About.Describe.GetRequests() {
		calls = append(calls, "Request")
	}
	for _, call := range calls {
		o.refused(call, "before Connect", "Connect", o.call(call))
	}
	o.is(core.FaultConflict, "Configure", "a second time", o.call("Configure"))
	p.Inspect(t.Usage())
	p.Connect()
	o.is(core.FaultConflict, "Connect", "a second time", o.call("Connect"))
	p.Inspect(t.Usage()) // any number of times
	x := t.traffic(p)
	if x.sub != nil {
		o.refused("Subscribe", "while a stream of the registration is open", "", o.call("Subscribe"))
	}
	if t.About.Publishing != nil {
		b := p.Publisher()
		b.Confirmed(Outgoing(t.Messages(t.Destination(), 1, 0)...)...)
		o.refused("Publish", "while a stream is open", "", o.call("Publish"))
	}
	o.refused("Supervise", "while a stream is open", "", o.call("Supervise"))
	x.round(1) // nothing of it has hurt what was open
	x.end()
	p.closing()
	for _, call := range append([]string{"Configure", "Inspect", "Connect", "Close"}, calls...) {
		o.is(core.FaultClosed, call, "behind Close", o.call(call))
	}
	p.Unleash()
}

// call makes a call and returns its error; a stream's is that of its first
// message.
func (o *order) call(name string) error {
	ctx, cancel := o.t.limited()
	defer cancel()
	l := o.p.link
	switch name {
	case "Configure":
		r, err := l.Configure(ctx, &transportpb.ConfigureRequest{
			Endpoint: "conform", Generation: o.p.proc.Generation(), Settings: o.t.Settings, Stdio: o.p.stdio != nil,
		})
		if err == nil && r.GetFault() != nil {
			err = convert.ToFault(r.GetFault())
		}
		return err
	case "Inspect":
		_, err := l.Inspect(ctx, o.t.Usage())
		return err
	case "Connect":
		_, err := l.Connect(ctx, &transportpb.ConnectRequest{})
		return err
	case "Close":
		_, err := l.Close(ctx, &transportpb.CloseRequest{Limit: int64(closeLimit)})
		return err
	case "Request":
		_, err := l.Request(ctx, &transportpb.RequestRequest{Timeout: int64(time.Second)})
		return err
	default:
		return o.stream(ctx, l, name)
	}
}

// stream opens a stream and returns the error with which it ends, nil where it
// is served.
func (o *order) stream(ctx context.Context, l link.Link, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := frame.Outgoing{
		ID: 1, Message: o.t.Messages(o.t.Destination(), 1, 0)[0],
		Purpose: uint8(transportpb.Purpose_PURPOSE_APPLICATION), Options: o.t.Send,
	}
	return firstAnswer(ctx, l, o.t.registration(), out, name)
}

// refused checks that a call was answered with a fault that names a call.
func (o *order) refused(call, when, missing string, err error) {
	var fault *core.Fault
	switch {
	case err == nil:
		o.t.Errorf("%s %s is taken: it is answered with a fault", call, when)
	case !errors.As(err, &fault):
		o.t.Fatalf("%s %s is answered with %v: it is answered with a fault", call, when, err)
	case !strings.Contains(strings.ToLower(fault.Message), strings.ToLower(missing)):
		o.t.Errorf("%s %s is answered with a fault that does not name what is missing, %s: %q", call, when, missing, fault.Message)
	}
}

// is checks that a call was answered with a fault of a code.
func (o *order) is(code core.FaultCode, call, when string, err error) {
	var fault *core.Fault
	switch {
	case err == nil:
		o.t.Errorf("%s %s is taken: it is answered with %v", call, when, code)
	case !errors.As(err, &fault):
		o.t.Fatalf("%s %s is answered with %v: it is answered with a fault", call, when, err)
	case fault.Code != code:
		o.t.Errorf("%s %s is answered with %v in place of %v: %v", call, when, fault.Code, code, fault)
	}
}

// errEnded says that a stream ended in order where it was expected to be served
// or refused.
var errEnded = errors.New("the stream ended without a word")

// firstAnswer opens a stream, says something that is answered, and returns the
// error in place of the answer. A stream that is served is ended in order.
func firstAnswer(ctx context.Context, l link.Link, r *transportpb.Registration, o frame.Outgoing, name string) error {
	var err error
	said := func() bool { return err == nil || errors.Is(err, io.EOF) } // EOF: the answer says why
	switch name {
	case "Subscribe":
		var s link.SubscribeStream
		if s, err = l.Subscribe(ctx); err == nil {
			if err = s.Send(&frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: r}}); said() {
				if err = s.Recv(&frame.SubscribeResponse{}); err == nil {
					return last(s.CloseSend, func() error { return s.Recv(&frame.SubscribeResponse{}) },
						func() error { return s.Send(&frame.SubscribeRequest{Stop: true}) })
				}
			}
		}
	case "Publish":
		var s link.PublishStream
		if s, err = l.Publish(ctx); err == nil {
			f := frame.NewPublishes()
			f.Items = append(f.Items, o)
			if err = s.Send(f); said() {
				if _, err = s.Recv(nil); err == nil {
					return last(s.CloseSend, func() error { _, err := s.Recv(nil); return err })
				}
			}
		}
	case "Supervise":
		var s link.SuperviseStream
		if s, err = l.Supervise(ctx); err == nil {
			if err = s.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_Beat{Beat: 1}}); said() {
				if _, err = s.Recv(); err == nil {
					return last(s.CloseSend, func() error { _, err := s.Recv(); return err })
				}
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return err
}

// last ends a stream in order.
func last(halfClose, recv func() error, before ...func() error) error {
	for _, f := range append(before, halfClose) {
		if err := f(); err != nil {
			return err
		}
	}
	for {
		if err := recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
