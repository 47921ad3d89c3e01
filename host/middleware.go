// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Next handles a delivery: the handler itself, or what middleware made of it.
// What it returns is read as what a [Handler] returns.
type Next func(ctx context.Context, m Incoming) error

// errForeign is what a handler says that was given somebody else's message.
var errForeign = errors.New("middleware passed on a message that is not the one it was given; pass on its own")

// Middleware wraps the handler, the first of ms outermost. It runs once for each
// delivery that could be decoded, on the subscription's worker, within
// [Timeout], and before a reply or [Forward] is published. Each function of ms is
// called once for each handler, when the host starts.
//
// What middleware returns is the outcome, as if the handler had returned it: nil
// without calling next acks a message that nobody has handled, and then there is
// no reply. Values that it puts into the context are the handler's; a context
// that it makes anew does not end when a stop runs out of time, and the handler
// is then cut off as one that does not return. It may call next again, with the
// same message, once the former call has returned; what the handler gives to
// [Publisher.PublishWith] then leaves once for each call. Middleware that returns before
// the handler does has said the outcome; the delivery is settled, and its worker
// free, when the handler has returned as well. A panic is one of the handler, and so
// is runtime.Goexit.
//
// It is refused with [HandleBatch], where there is no single delivery to wrap.
func Middleware(ms ...func(Next) Next) Rule {
	at := caller()
	return Rule{"Middleware", at, func(s *ruleSet) *complaint {
		for i, m := range ms {
			s.middleware = append(s.middleware, wrapper{m, at, i + 1})
			if m == nil {
				return &complaint{fmt.Sprintf("number %d is nil", i+1), "give functions, or leave it out"}
			}
		}
		return nil
	}}
}

// wrapper is one of the functions that Middleware was given.
type wrapper struct {
	wrap   func(Next) Next
	place  place // of the rule
	number int   // in it, from 1 on
}

// chain puts ms around last, the first outermost. It returns nil where one of
// them cannot be built, and what is wrong with it.
func chain(ms []wrapper, last Next) (next Next, found []Finding) {
	next = last
	for _, m := range slices.Backward(ms) {
		if m.wrap == nil {
			continue // complained of with the rule
		}
		var c *complaint
		if next, c = m.around(next); c != nil {
			return nil, []Finding{{Option: "Middleware", Message: c.message, Fix: c.fix, Places: places(m.place)}}
		}
	}
	return next, nil
}

// around has m wrap last.
func (m *wrapper) around(last Next) (next Next, c *complaint) {
	defer func() {
		if thrown := recover(); thrown != nil {
			next, c = nil, &complaint{
				fmt.Sprintf("number %d cannot be built: %v", m.number, thrown),
				"repair what it is given, or let it fail for each delivery",
			}
		}
	}()
	if next = m.wrap(last); next == nil {
		return nil, &complaint{fmt.Sprintf("number %d returned nil for what it wraps", m.number), "let it return a function"}
	}
	return next, nil
}
