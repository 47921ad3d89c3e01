// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// The headers of requests and replies.
const (
	headerReplyTo       = "reply-to"
	headerCorrelationID = "correlation-id"
)

// HandleReply sets the handler of a subscription whose result is published
// before the delivery is acked: to the destination on the subscription's own
// endpoint, or that of the rule [ReplyOn], that the message's reply-to header
// names, else to the one of the rule [ReplyTo]. A message with neither is handled and
// acked, and what f returned for it goes nowhere. An error of f is read as that of a
// [Handler]; there is no reply then.
//
// The reply is written by the codec of Out ([DefaultContentType] says otherwise)
// and carries the request's correlation-id header; an Out of type [core.Message]
// brings headers of its own. One that cannot be written, that nothing can carry or
// that is not confirmed is a retry of the delivery (L-REPLY), so that f runs again.
//
// In all else it is as [Handle] says.
func HandleReply[In, Out any](s *Subscription, f func(ctx context.Context, m *Message[In]) (Out, error), rules ...Rule) {
	h := register(s, "HandleReply", caller(), rules)
	if h == nil {
		return
	}
	if f == nil {
		h.complain(s, Finding{Option: "HandleReply", Message: "has no handler", Fix: "give a function", Places: places(h.place)})
	}
	carried[In](h, s, unread[In])
	carried[Out](h, s)
	h.decoded = !isRaw[In]()
	r := &runner[In]{calls: h.calls(s), also: []func(format) bool{assumable[Out]}}
	r.replies = &replying{write: write[Out], typ: reflect.TypeFor[Out]().String()}
	r.handler = func(ctx context.Context, m *Message[In]) error {
		m.e.reply, m.e.replies = nil, false // of a former call, by middleware that tries again
		out, err := f(ctx, m)
		if err == nil {
			m.e.reply, m.e.replies = out, true
		}
		return err
	}
	h.runs = r
}

// ReplyTo says where the replies of [HandleReply] go whose request names nothing
// in its reply-to header. A d without an endpoint is on the subscription's own.
func ReplyTo(d core.Destination) Rule {
	return Rule{"ReplyTo", caller(), func(s *ruleSet) *complaint {
		s.replyTo = d
		return nameless(d)
	}}
}

// ReplyOn says on which endpoint the reply-to headers of [HandleReply]'s requests
// name destinations. The default is the subscription's own. A subscription that
// takes the copies of requests which came over another endpoint needs it: their
// reply-to still names who asked there.
func ReplyOn(e *Endpoint) Rule {
	return Rule{"ReplyOn", caller(), func(s *ruleSet) *complaint {
		if s.replyOn = e; e == nil {
			return &complaint{"names no endpoint", "give the one that the requests come over"}
		}
		return nil
	}}
}

// replying publishes the replies of one subscription.
type replying struct {
	write  func(cs *codecs, v any, contentType string) (core.Message, error)
	typ    string // of the replies
	routes *routes
}

// write writes a reply, whose type is T.
func write[T any](cs *codecs, v any, contentType string) (core.Message, error) {
	reply, _ := v.(T) // a nil of an interface type is its zero value
	if isRaw[T]() {
		contentType = ""
	}
	payload, headers, written, err := encode(cs, reply, contentType)
	if err != nil {
		return core.Message{}, err
	}
	m := core.Message{Payload: payload, Headers: headers}
	if written != "" {
		m.Headers = withHeaders(headers, nil, written)
	}
	return m, nil
}

// destination is where the reply to a message goes; zero = nowhere.
func (r *replying) destination(c *calls, e *envelope) (to core.Destination, named bool) {
	if name, ok := lookup(e.headers(), headerReplyTo); ok && name != "" {
		on := c.from.endpoint
		if c.rules.replyOn != nil {
			on = c.rules.replyOn
		}
		return core.Destination{Endpoint: on.name, Name: name}, true
	}
	to = c.rules.replyTo
	if to.Name != "" && to.Endpoint == "" {
		to.Endpoint = c.from.endpoint.name
	}
	return to, false
}

// publish returns the publish of a reply; ok is false where it goes nowhere. Its
// error is a *settlement.PublishError.
func (r *replying) publish(c *calls, e *envelope) (p settlement.Publish, ok bool, err error) {
	to, named := r.destination(c, e)
	if to.IsZero() {
		c.log().Debug("reply goes nowhere: the message has no header reply-to, and no rule ReplyTo is given",
			"endpoint", c.from.endpoint.name, "subscription", c.from.name, "attempt", e.delivery.Number)
		return p, false, nil
	}
	fail := func(code core.FaultCode, err error) (settlement.Publish, bool, error) {
		return p, false, &settlement.PublishError{
			To: to, Purpose: purposeReply, Type: r.typ, Fault: &core.Fault{Code: code, Message: err.Error()},
		}
	}
	m, err := r.written(c, e.reply)
	if err != nil {
		return fail(core.FaultInvalid, err)
	}
	if named {
		if _, err := r.routes.to(to); err != nil {
			return fail(core.FaultNotFound, err)
		}
	}
	if id, ok := last(e.headers(), headerCorrelationID); ok {
		if _, own := last(m.Headers, headerCorrelationID); !own {
			m.Headers = append(m.Headers[:len(m.Headers):len(m.Headers)], core.Header{Name: headerCorrelationID, Value: id})
		}
	}
	m.Name = to.Name
	return settlement.Publish{
		To: to, Message: m, Purpose: purposeReply, Type: r.typ, WithCarry: to.Endpoint == c.from.endpoint.name,
	}, true, nil
}

// written writes a reply; what its codec throws is an error.
func (r *replying) written(c *calls, v any) (m core.Message, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("write reply: %w", thrown(v))
		}
	}()
	return r.write(c.codecs, v, c.rules.contentType)
}

// log returns the host's logger.
func (c *calls) log() *slog.Logger { return c.from.endpoint.host.options.logger }
