// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
)

// Next handles a delivery: the handler itself, or what middleware made of it.
// What it returns is read as what a [Handler] returns.
type Next func(ctx context.Context, m Incoming) error

// errForeign is what a handler says that was given somebody else's message.
var errForeign = errors.New("middleware passed on a message that is not the one it was given; pass on its own")

// Middleware wraps the handler, the first of ms outermost. It runs once for each
// delivery that could be decoded, on the subscription's worker, within
// [Timeout], and before a reply or [Forward] is published. Each function of ms is
// called once, when the host starts.
//
// What middleware returns is the outcome, as if the handler had returned it: nil
// without calling next acks a message that nobody has handled, and then there is
// no reply. Values that it puts into the context are the handler's; a context
// that it makes anew does not end when a stop runs out of time, and the handler
// is then cut off as one that does not return. It may call next again, with the
// same message. A panic is one of the handler, and so is runtime.Goexit.
//
// It is refused with [HandleBatch], where there is no single delivery to wrap.
func Middleware(ms ...func(Next) Next) Rule {
	return Rule{"Middleware", caller(), func(s *ruleSet) *complaint {
		s.middleware = append(s.middleware, ms...)
		for i, m := range ms {
			if m == nil {
				return &complaint{fmt.Sprintf("number %d is nil", i+1), "give functions, or leave it out"}
			}
		}
		return nil
	}}
}

// chain puts ms around last, the first outermost.
func chain(ms []func(Next) Next, last Next) (next Next, c *complaint) {
	i := len(ms)
	defer func() {
		if thrown := recover(); thrown != nil {
			next, c = nil, &complaint{
				fmt.Sprintf("number %d cannot be built: %v", i+1, thrown),
				"repair what it is given, or let it fail for each delivery",
			}
		}
	}()
	next = last
	for i--; i >= 0; i-- {
		if ms[i] == nil {
			continue // complained of with the rule
		}
		if next = ms[i](next); next == nil {
			return nil, &complaint{fmt.Sprintf("number %d returned nil for what it wraps", i+1), "let it return a function"}
		}
	}
	return next, nil
}
