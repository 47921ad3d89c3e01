// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
)

// Tracer makes spans of what a host does. Its methods are called from many
// goroutines. They may read headers and, of an [Outgoing], set them, which is how
// a trace travels. Where there is no span they may return nil for the context,
// the function, or both.
type Tracer interface {
	// StartHandling is called before a handler, and outside of its [Middleware];
	// ctx is the handler's but for what it adds. The function that it returns is
	// called with the handler's error, whatever outcome that is; the message is
	// still valid then. Of a batch it is called for each message, and the contexts
	// are not used, unless it is one message alone.
	StartHandling(ctx context.Context, m Incoming) (context.Context, func(error))
	// StartPublishing is called before a publisher publishes, and outside of its
	// middleware. The function that it returns is called with what
	// [PublishNext] returned. Copies, dead letters, replies and what [Forward]
	// publishes have the headers of the delivery and no span of their own.
	StartPublishing(ctx context.Context, o *Outgoing) (context.Context, func(error))
}

// What spans end with that no error of the user's stands for.
var (
	errPanicked = errors.New("it panicked")
	errLeftOut  = errors.New("the handler returned no entry for it")
)

// WithTracer sets who makes spans. The default is nobody, which costs nothing. A
// panic of the tracer in StartHandling, or in the function that it returned, is
// one of the handler; one in StartPublishing goes to the one who publishes.
func WithTracer(t Tracer) Option {
	return Option{name: "WithTracer", place: caller(), set: func(o *options) *complaint {
		if t == nil {
			return &complaint{"is nil", "give a tracer, or leave the option out"}
		}
		o.tracer = t
		return nil
	}}
}

// span is what a tracer gave for ctx, with what stands in the place of a nil.
func span(ctx, within context.Context, end func(error)) (context.Context, func(error)) {
	if within == nil {
		within = ctx
	}
	if end == nil {
		end = func(error) {}
	}
	return within, end
}

// traced returns next within the tracer's span; nil where there is neither
// middleware nor tracer. last is what next is without middleware.
func traced(t Tracer, next, last Next) Next {
	if t == nil {
		return next
	}
	if next == nil {
		next = last
	}
	return func(ctx context.Context, m Incoming) (err error) {
		within, end := t.StartHandling(ctx, m)
		ctx, end = span(ctx, within, end)
		err = errPanicked
		defer func() { end(err) }()
		err = next(ctx, m)
		return err
	}
}

// tracedBatch calls f within a span for each message.
func tracedBatch[T any](ctx context.Context, t Tracer, ms []*Message[T], f func(context.Context) []error) (errs []error) {
	ends := make([]func(error), 0, len(ms))
	returned := false
	defer func() {
		for i, end := range ends {
			switch {
			case !returned:
				end(errPanicked)
			case errs == nil:
				end(nil)
			case i < len(errs):
				end(errs[i])
			default:
				end(errLeftOut)
			}
		}
	}()
	within := ctx
	for _, m := range ms {
		one, end := t.StartHandling(ctx, m)
		one, end = span(ctx, one, end)
		ends = append(ends, end)
		if len(ms) == 1 {
			within = one
		}
	}
	errs = f(within)
	returned = true
	return errs
}

// tracedLeaving is traced of what leaves.
func (o *options) tracedLeaving(next PublishNext) PublishNext {
	t := o.tracer
	if t == nil {
		return next
	}
	if next == nil {
		next = leave
	}
	return func(ctx context.Context, m *Outgoing) (receipt Receipt, err error) {
		within, end := t.StartPublishing(ctx, m)
		ctx, end = span(ctx, within, end)
		err = errPanicked
		defer func() { end(err) }()
		receipt, err = next(ctx, m)
		return receipt, err
	}
}
