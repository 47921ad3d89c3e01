// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// handling runs the user's code of one subscription.
type handling interface {
	// prepare reads the rules once all of them are known, and says what is wrong.
	prepare() []Finding
	// serve makes it ready for deliveries of a subscription in a run.
	serve(s *subscribed)
	handle(ctx context.Context, d *settlement.Delivery) settlement.Said
	exited(ctx context.Context, d *settlement.Delivery) settlement.Said
	// batch is nil where deliveries are handled one by one.
	batch() *settlement.Batch
}

// runner calls a handler for deliveries one by one.
type runner[T any] struct {
	calls
	handler Handler[T]
	also    []func(format) bool // assumable of other types than T
	next    Next                // the handler with its middleware; nil = without
	pool    sync.Pool           // of *Message[T]
}

func (r *runner[T]) batch() *settlement.Batch { return nil }

func (r *runner[T]) prepare() []Finding {
	r.next = nil
	found := r.assumes(append(r.also, assumable[T])...)
	if len(r.rules.middleware) > 0 {
		next, wrong := chain(r.rules.middleware, r.last)
		found = append(found, wrong...)
		r.next = next
	}
	r.next = traced(r.tracer, r.next, r.last)
	return found
}

// last is the end of the chain.
func (r *runner[T]) last(ctx context.Context, in Incoming) error {
	m, ok := in.(*Message[T])
	if !ok { // one that embeds it
		if e := envelopeOf(in); e != nil {
			m, _ = e.self.(*Message[T])
		}
	}
	if m == nil || m.e.from != r.from || m.e.cloned {
		return errForeign
	}
	if w := m.e.passage; w != nil {
		if err := w.begin(); err != nil {
			return err
		}
		defer w.end()
	}
	if m.e.delivery == nil {
		return errForeign
	}
	return r.user(ctx, m)
}

// user calls the user's handler, if there is one, for middleware, which may call
// it again.
func (r *runner[T]) user(ctx context.Context, m *Message[T]) error {
	n, acked := m.e.holds(), false
	defer func() {
		if !acked {
			m.e.forget(n)
		}
	}()
	err := r.once(ctx, m)
	acked = err == nil
	return err
}

// once calls the user's handler, if there is one. What it holds back after it
// failed is left to the message's end.
func (r *runner[T]) once(ctx context.Context, m *Message[T]) error {
	if r.handler == nil {
		return nil
	}
	m.e.ctx = ctx
	return r.handler(ctx, m)
}

// message returns one for a delivery.
func (r *runner[T]) message(d *settlement.Delivery) *Message[T] {
	m, ok := r.pool.Get().(*Message[T])
	if !ok {
		m = new(Message[T])
		m.e.self, m.e.from = m, r.from
	}
	if len(r.rules.middleware) > 0 {
		m.e.passage = &passage{single: true}
	}
	m.e.delivery = d
	return m
}

// handle is the settlement.Handler of r.
func (r *runner[T]) handle(ctx context.Context, d *settlement.Delivery) (said settlement.Said) {
	if unready(d) {
		return r.unread(ctx, d)
	}
	m := r.message(d)
	r.call(ctx, m, &said)
	// Only what came to an end in order is used again: after a panic the message
	// may still be in somebody's hands.
	if said.Outcome.Cause != core.CausePanic {
		r.done(m)
	}
	return said
}

// done ends a message, to be used again unless the user's code may have kept what
// would do something with it then.
func (r *runner[T]) done(m *Message[T]) {
	var zero T
	m.Value = zero
	if m.e.passage != nil || m.e.held.Load() != nil {
		m.e.release()
		m.e.delivery = nil
		return
	}
	m.e.done()
	r.pool.Put(m)
}

// call decodes the message, runs the handler and reads what it said into said,
// which is empty. Decoding may be code of the user's as well.
func (r *runner[T]) call(ctx context.Context, m *Message[T], said *settlement.Said) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			*said = r.panicked(ctx, m.e.delivery, thrown(v))
		} else if !returned {
			said.Outcome.Kind, said.Err = core.OutcomeRetry, settlement.ErrExited // for undo alone
		}
		m.e.undoUnless(said)
	}()
	r.outcome(ctx, m, said)
	returned = true
}

// outcome is call without what happens when the user's code does not return.
func (r *runner[T]) outcome(ctx context.Context, m *Message[T], said *settlement.Said) {
	if err := decode(r.codecs, r.rules.contentType, &m.e.delivery.Message, &m.Value); err != nil {
		*said = r.undecodable(m.e.delivery, err)
		return
	}
	if err := r.run(ctx, m); err != nil {
		*said = r.judge(ctx, m.e.delivery, err)
		return
	}
	r.acked(&m.e, said)
}

// run calls the handler with its middleware.
func (r *runner[T]) run(ctx context.Context, m *Message[T]) error {
	if r.rules.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, r.rules.timeout)
		defer cancel()
		ctx = limited
	}
	if r.next == nil {
		return r.once(ctx, m)
	}
	if w := m.e.passage; w != nil {
		defer w.close()
	}
	return r.next(ctx, m)
}
