// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Handler handles one delivery. It runs for one delivery of its subscription at
// a time. nil acks; a plain error is a retry through the policy; [Retry],
// [RetryAfter], [Drop], [DeadLetter] and [Leave] say it otherwise, wrapped or
// not. ctx ends shortly before the drain limit of a stop, at an abort, and after
// the rule [Timeout]; once a stop has ended it, any error leaves the delivery
// unsettled.
//
// T says how the payload is read: []byte and [core.Message] take it as it is,
// and share the delivery's memory; a protobuf message is read as protobuf, or as
// JSON where the content-type header says so; everything else is read as JSON.
type Handler[T any] func(ctx context.Context, m *Message[T]) error

// Handle sets the handler of a subscription and its rules. It is called once
// for each subscription, before Run. f may be nil with the rule [Forward]. It
// panics without a subscription, and after Run was called.
func Handle[T any](s *Subscription, f Handler[T], rules ...Rule) {
	at := caller()
	if s == nil || s.endpoint == nil {
		panic("longshore: Handle without a subscription; give it what Endpoint.Subscription returned")
	}
	s.endpoint.host.registering("Handle")
	if s.handled != nil {
		s.endpoint.host.complain(Finding{
			Endpoint: s.endpoint.name, Subscription: s.name, Option: "Handle",
			Message: "has two handlers", Fix: "keep one of them", Places: places(s.handled.place, at),
		})
		return
	}
	set, found := resolve(rules)
	if _, forwards := set.given["Forward"]; f == nil && !forwards {
		found = append(found, Finding{
			Option: "Handle", Message: "has no handler", Fix: "give a function, or the rule Forward", Places: places(at),
		})
	}
	if c := uncarried[T](); c != nil {
		found = append(found, Finding{Option: "Handle", Message: c.message, Fix: c.fix, Places: places(at)})
	}
	for _, c := range found {
		c.Endpoint, c.Subscription = s.endpoint.name, s.name
		s.endpoint.host.complain(c)
	}
	r := &runner[T]{handler: f, rules: set, own: s.endpoint.name}
	s.handled = &handled{place: at, rules: set, decoded: !isRaw[T](), run: r.handle, exited: r.exited}
}

// handled is what Handle declares.
type handled struct {
	place   place
	rules   ruleSet
	decoded bool
	run     settlement.Handler
	exited  settlement.Handler
}

// runner calls a handler for deliveries.
type runner[T any] struct {
	handler Handler[T]
	rules   ruleSet
	own     string    // the subscription's endpoint
	pool    sync.Pool // of *Message[T]
}

// PanicError is what a panic of a handler becomes, and a handler that ends its
// goroutine with runtime.Goexit.
type PanicError struct {
	Value any // what was thrown, or an error that says how the handler ended
}

// Error names what was thrown.
func (e *PanicError) Error() string {
	if err, ok := e.Value.(error); ok && errors.Is(err, settlement.ErrExited) {
		return err.Error()
	}
	return fmt.Sprintf("handler panicked: %v", e.Value)
}

// Unwrap returns what was thrown where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// handle is the settlement.Handler of r.
func (r *runner[T]) handle(ctx context.Context, d *settlement.Delivery) settlement.Said {
	if d.Undecodable != nil {
		return r.backedOff(d, settlement.Said{
			Outcome: r.rules.undecodable.outcome(core.CauseUndecodable), Err: d.Undecodable,
		})
	}
	m, ok := r.pool.Get().(*Message[T])
	if !ok {
		m = new(Message[T])
	}
	m.delivery = d
	said := r.call(ctx, m)
	// Only what came to an end in order is used again: after a panic the message
	// may still be in somebody's hands.
	if said.Outcome.Cause != core.CausePanic {
		*m = Message[T]{}
		r.pool.Put(m)
	}
	return r.backedOff(d, said)
}

// call decodes the message, runs the handler and reads what it said. Decoding
// may be code of the user's as well.
func (r *runner[T]) call(ctx context.Context, m *Message[T]) (said settlement.Said) {
	defer func() {
		if thrown := recover(); thrown != nil {
			said = r.panicked(ctx, thrown)
			said.Stack = string(debug.Stack())
		}
	}()
	if err := decode(&m.delivery.Message, &m.Value); err != nil {
		said.Outcome, said.Err = r.rules.undecodable.outcome(core.CauseUndecodable), err
		return said
	}
	if r.handler != nil {
		run := ctx
		if r.rules.timeout > 0 {
			limited, cancel := context.WithTimeout(ctx, r.rules.timeout)
			defer cancel()
			run = limited
		}
		if err := r.handler(run, m); err != nil {
			// The context that a stop ends is not the one of the rule Timeout.
			if ctx.Err() != nil {
				return settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeLeave}}
			}
			said.Outcome, said.Err = outcomeOf(err)
			return said
		}
	}
	said.Outcome.Kind = core.OutcomeAck
	if !r.rules.forward.IsZero() {
		said.Publishes, said.Failed = r.forward(m), r.forwardFailed
	}
	return said
}

// panicked is what it means that the handler has thrown something.
func (r *runner[T]) panicked(ctx context.Context, thrown any) settlement.Said {
	said := settlement.Said{
		Outcome: r.rules.panics.outcome(core.CausePanic), Err: &PanicError{Value: thrown}, Thrown: fmt.Sprint(thrown),
	}
	if ctx.Err() != nil {
		said.Outcome.Kind = core.OutcomeLeave
	}
	return said
}

// exited is what it means that the handler has ended its goroutine.
func (r *runner[T]) exited(ctx context.Context, d *settlement.Delivery) settlement.Said {
	return r.backedOff(d, r.panicked(ctx, settlement.ErrExited))
}

// backedOff turns a plain retry under a Backoff into a retry later.
func (r *runner[T]) backedOff(d *settlement.Delivery, said settlement.Said) settlement.Said {
	if r.rules.backoff.given() && said.Outcome.Kind == core.OutcomeRetry {
		said.Outcome.Kind = core.OutcomeRetryAfter
		said.Outcome.After = r.rules.backoff.draw(d.Number)
	}
	return said
}

// forward is the publish of the rule Forward.
func (r *runner[T]) forward(m *Message[T]) []settlement.Publish {
	to := r.rules.forward
	if to.Endpoint == "" {
		to.Endpoint = r.own
	}
	out := core.Message{Name: to.Name, Headers: forwarded(m.Headers()), Payload: m.Payload()}
	if m.forwards {
		out.Payload = m.replaced
	}
	return []settlement.Publish{{
		To: to, Message: out, Purpose: uint8(transportpb.Purpose_PURPOSE_APPLICATION),
	}}
}

// forwardFailed is what it means that the publish of the rule Forward was not
// confirmed.
func (r *runner[T]) forwardFailed(d *settlement.Delivery, err error) settlement.Said {
	return r.backedOff(d, settlement.Said{
		Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError},
		Err:     fmt.Errorf("forward: %w", err),
	})
}

// The headers of the runtime's own, which a forwarded message leaves behind.
const (
	headerCount     = "x-ruststream-retry-count"
	prefixLongshore = "x-longshore-"
)

// forwarded returns hs without the runtime's own headers. Without any of those
// it is hs itself.
func forwarded(hs core.Headers) core.Headers {
	for i, h := range hs {
		if !ownHeader(h.Name) {
			continue
		}
		kept := append(make(core.Headers, 0, len(hs)-1), hs[:i]...)
		for _, h := range hs[i+1:] {
			if !ownHeader(h.Name) {
				kept = append(kept, h)
			}
		}
		return kept
	}
	return hs
}

// ownHeader reports whether a header is the runtime's own.
func ownHeader(name string) bool {
	return strings.EqualFold(name, headerCount) ||
		len(name) >= len(prefixLongshore) && strings.EqualFold(name[:len(prefixLongshore)], prefixLongshore)
}
