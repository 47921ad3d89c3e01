// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"slices"
	"sync"
)

// Handler handles one delivery. Unless [Workers] says otherwise it runs for one
// delivery of its subscription at a time. nil acks; a plain error is a retry
// through the policy; [Retry], [RetryAfter], [Snooze], [Drop], [DeadLetter] and
// [Leave] say it otherwise, wrapped or not. ctx ends shortly before the drain
// limit of a stop, at an abort, and after the rule [Timeout]; once a stop has
// ended it, any error leaves the delivery unsettled.
//
// T says how the payload is read: []byte and [core.Message] take it as it is,
// and share the delivery's memory, which must not be changed; a protobuf message is
// read as protobuf, or as JSON where the content-type header says so; everything
// else is read as JSON. [WithCodec] adds other content types.
type Handler[T any] func(ctx context.Context, m *Message[T]) error

// Handle sets the handler of a subscription and its rules. It is called once
// for each subscription, before Run; [HandleReply] and [HandleBatch] stand in its
// place. f may be nil with the rule [Forward]. It panics without a subscription,
// and after Run was called.
func Handle[T any](s *Subscription, f Handler[T], rules ...Rule) {
	h := register(s, "Handle", caller(), rules)
	if h == nil {
		return
	}
	h.idle = f == nil
	carried[T](h, s, unread[T])
	h.decoded = !isRaw[T]()
	h.runs = &runner[T]{calls: h.calls(s), handler: f}
}

// handled is what a registration declares.
type handled struct {
	place   place
	as      string // Handle, HandleReply or HandleBatch
	own     []Rule // as they were given
	rules   ruleSet
	idle    bool // there is no function: the rule Forward has to be there
	decoded bool
	most    int // messages of a batch; 0 = it handles them one by one
	runs    handling

	mu       sync.Mutex
	prepared bool
	found    []Finding // by the preparation
}

// calls returns what runners of the subscription's have in common.
func (h *handled) calls(s *Subscription) calls {
	o := &s.endpoint.host.options
	return calls{rules: &h.rules, from: s, codecs: &o.codecs, tracer: o.tracer}
}

// prepare prepares the handler once for all runs, and returns what is wrong.
func (h *handled) prepare() []Finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.prepared {
		h.prepared = true
		h.found = h.runs.prepare()
	}
	return slices.Clone(h.found)
}

// register takes a handler's registration and its rules. It returns nil where
// the subscription has a handler already.
func register(s *Subscription, as string, at place, rules []Rule) *handled {
	if s == nil || s.endpoint == nil {
		panic("longshore: " + as + " without a subscription; give it what Endpoint.Subscription returned")
	}
	s.endpoint.host.registering(as)
	if s.handled != nil {
		s.endpoint.host.complain(Finding{
			Endpoint: s.endpoint.name, Subscription: s.name, Option: as,
			Message: "has two handlers", Fix: "keep one of them", Places: places(s.handled.place, at),
		})
		return nil
	}
	set, found := resolve(rules, nil)
	h := &handled{place: at, as: as, own: rules, rules: set}
	h.complain(s, append(found, h.misplaced()...)...)
	s.handled = h
	return h
}

// declare puts defaults under the registration's own rules, and complains of what
// is missing or left out then.
func (h *handled) declare(s *Subscription, defaults ...[]Rule) []Finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []Finding
	add := func(f Finding) {
		f.Endpoint, f.Subscription = s.endpoint.name, s.name
		found = append(found, f)
	}
	h.rules, _ = resolve(h.own, func(r Rule) bool {
		c := h.misfit(r.name)
		if c != nil && r.name == "Middleware" { // somebody may rely on it
			add(Finding{
				Option: r.name, Message: "the default is not used: it " + c.message, Fix: c.fix + ", or give the rule NoDefaults",
				Places: places(r.place, h.place), Warning: true,
			})
		}
		return c == nil
	}, defaults...)
	h.prepared = false
	if _, forwards := h.rules.given["Forward"]; h.idle && !forwards {
		add(Finding{Option: h.as, Message: "has no handler", Fix: "give a function, or the rule Forward", Places: places(h.place)})
	}
	return found
}

// misplaced complains of own rules that are nothing to this kind of handler.
func (h *handled) misplaced() []Finding {
	var found []Finding
	for _, r := range h.own {
		if c := h.misfit(r.name); c != nil {
			found = append(found, Finding{Option: r.name, Message: c.message, Fix: c.fix, Places: places(r.place, h.place)})
		}
	}
	return found
}

// misfit complains of a rule that is nothing to this kind of handler.
func (h *handled) misfit(rule string) *complaint {
	switch {
	case (rule == "ReplyTo" || rule == "ReplyOn") && h.as != "HandleReply":
		return &complaint{"is given to " + h.as + ", which does not reply", "use HandleReply, or leave the rule out"}
	case rule == "Middleware" && h.as == "HandleBatch":
		return &complaint{"wraps single deliveries, and is given to HandleBatch", "call what it does from the handler"}
	}
	return nil
}

// complain keeps what is wrong with a registration for the start.
func (h *handled) complain(s *Subscription, found ...Finding) {
	for _, f := range found {
		f.Endpoint, f.Subscription = s.endpoint.name, s.name
		s.endpoint.host.complain(f)
	}
}

// carried complains of a T that no codec can carry, and of what else is wrong with
// it.
func carried[T any](h *handled, s *Subscription, more ...func(*codecs) *complaint) {
	cs := &s.endpoint.host.options.codecs
	found := []*complaint{uncarried[T](cs)}
	for _, also := range more {
		found = append(found, also(cs))
	}
	if c := allOf(found...); c != nil {
		h.complain(s, Finding{Option: h.as, Message: c.message, Fix: c.fix, Places: places(h.place)})
	}
}
