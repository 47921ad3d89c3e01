// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Meter is told of what a host does, for metrics. Its methods are called from
// many goroutines, in the midst of the work: they must not block, and may keep
// what they are given. What they throw is logged, once a minute at most;
// runtime.Goexit in them is a panic that ends the process. Gauges are in
// [Host.Health].
type Meter interface {
	// Handled is called when a handler has returned, and for messages that cannot
	// be decoded.
	Handled(e HandledEvent)
	// Settled is called when the settlement of a delivery is over, once for each
	// delivery that was begun; those that their source took back before, or that a
	// stop gave back, are in no event.
	Settled(e SettledEvent)
	// Published is called with the receipt of each publish that was handed to an
	// endpoint, of copies, dead letters and replies too.
	Published(e PublishedEvent)
	// EndpointChanged is called when an endpoint's state has changed.
	EndpointChanged(e EndpointEvent)
}

// HandledEvent is a delivery whose handler has returned.
type HandledEvent struct {
	Endpoint     string
	Subscription string
	Attempt      uint64       // 1 = the first, 0 = unknown
	Outcome      core.Outcome // what the handler said, and how it came about
	Err          error        // the cause; nil = none
	Waited       time.Duration
	// Took is how long the handler ran, with decoding and middleware; of a batch
	// how long all of it did.
	Took time.Duration
}

// SettledEvent is a delivery whose settlement is over.
type SettledEvent struct {
	Endpoint     string
	Subscription string
	Attempt      uint64
	Outcome      core.Outcome
	Err          error
	Result       Result        // what became of it
	Lost         bool          // nobody has the message any more, against its policy
	OverCap      bool          // its source had delivered it too often: nothing was handled, and Outcome says nothing
	Took         time.Duration // from its arrival at the host to the end of its settlement
}

// PublishedEvent is a publish that was answered.
type PublishedEvent struct {
	To      core.Destination
	Purpose Purpose
	Receipt ReceiptStatus
	Err     error // why it is not confirmed; nil = it is, or no reason was given
	Bytes   int   // of payload and headers
	Took    time.Duration
}

// Purpose says what a publish is for.
type Purpose string

// The purposes.
const (
	PurposeApplication Purpose = "application" // publishers, Forward
	PurposeRetry       Purpose = "retry"       // a copy in place of a requeue
	PurposeDeadLetter  Purpose = "dead letter"
	PurposeReply       Purpose = "reply"
)

// ReceiptStatus says what a publish came to.
type ReceiptStatus string

// The statuses of receipts.
const (
	ReceiptConfirmed ReceiptStatus = "confirmed"
	ReceiptRefused   ReceiptStatus = "refused" // by the transport, or because the endpoint was down
	ReceiptUnknown   ReceiptStatus = "unknown" // it may have been sent
)

// EndpointEvent is a change of an endpoint's state.
type EndpointEvent struct {
	Endpoint   string
	State      EndpointState
	Since      time.Time
	Reason     string // why it is not up
	Generation uint64 // as in [EndpointHealth]
}

// WithMeter sets who is told of what the host does. The default is nobody, which
// costs nothing.
func WithMeter(m Meter) Option {
	return Option{name: "WithMeter", place: caller(), set: func(o *options) *complaint {
		if m == nil {
			return &complaint{"is nil", "give a meter, or leave the option out"}
		}
		o.meter = &guardedMeter{meter: m}
		return nil
	}}
}

// metered lets the meter see what the handlers of a subscription do.
func (s *subscribed) metered(o *settlement.LaneOptions) {
	m := s.on.run.opts.meter
	if m == nil {
		return
	}
	handle, exited, finished := o.Handle, o.Exited, o.Finished
	o.Handle = func(ctx context.Context, d *settlement.Delivery) settlement.Said {
		began := time.Now()
		said := handle(ctx, d)
		m.handled(o, d, &said, began)
		return said
	}
	if exited != nil {
		o.Exited = func(ctx context.Context, d *settlement.Delivery) settlement.Said {
			said := exited(ctx, d)
			m.handled(o, d, &said, time.Now())
			return said
		}
	}
	if o.Batch != nil {
		o.Batch = m.batch(o)
	}
	o.Finished = func(f *settlement.Finished) {
		m.settled(o, f)
		if finished != nil {
			finished(f)
		}
	}
}

// batch is a batch that the meter sees.
func (g *guardedMeter) batch(o *settlement.LaneOptions) *settlement.Batch {
	b := *o.Batch
	inner := *o.Batch
	b.Open = func(ctx context.Context, d *settlement.Delivery) (settlement.Said, bool) {
		began := time.Now()
		said, ok := inner.Open(ctx, d)
		if !ok {
			g.handled(o, d, &said, began)
		}
		return said, ok
	}
	b.Handle = func(ctx context.Context, ds []*settlement.Delivery, said []settlement.Said) int {
		began := time.Now()
		n := inner.Handle(ctx, ds, said)
		for i, d := range ds {
			g.handled(o, d, &said[i], began)
		}
		return n
	}
	if inner.Exited != nil {
		b.Exited = func(ctx context.Context, ds []*settlement.Delivery, said []settlement.Said) {
			began := time.Now()
			inner.Exited(ctx, ds, said)
			for i, d := range ds {
				g.handled(o, d, &said[i], began)
			}
		}
	}
	return &b
}

// handled tells of a handler that began at began.
func (g *guardedMeter) handled(o *settlement.LaneOptions, d *settlement.Delivery, said *settlement.Said, began time.Time) {
	g.Handled(HandledEvent{
		Endpoint: o.Endpoint, Subscription: o.Subscription, Attempt: d.Number,
		Outcome: said.Outcome, Err: said.Err, Waited: began.Sub(d.Received), Took: time.Since(began),
	})
}

// settled tells of the end of a settlement.
func (g *guardedMeter) settled(o *settlement.LaneOptions, f *settlement.Finished) {
	g.Settled(SettledEvent{
		Endpoint: o.Endpoint, Subscription: o.Subscription, Attempt: f.Delivery.Number,
		Outcome: f.Said.Outcome, Err: f.Said.Err, Result: Result(f.Result), Lost: f.Lost, OverCap: f.Over, Took: f.Took,
	})
}

// published returns what tells of an endpoint's publishes, nil without a meter.
func (a *attached) published() func(out *frame.Outgoing, r frame.Receipt, took time.Duration) {
	m := a.run.opts.meter
	if m == nil {
		return nil
	}
	return func(out *frame.Outgoing, r frame.Receipt, took time.Duration) {
		e := PublishedEvent{
			To:      core.Destination{Endpoint: a.endpoint.name, Name: out.Message.Name},
			Purpose: purposeOf(transportpb.Purpose(out.Purpose)),
			Receipt: statusOf(r.Status),
			Bytes:   frame.Weight(&out.Message),
			Took:    took,
		}
		if r.Fault != nil {
			e.Err = r.Fault
		}
		m.Published(e)
	}
}

// purposeOf is the word for a purpose.
func purposeOf(p transportpb.Purpose) Purpose {
	switch p {
	case transportpb.Purpose_PURPOSE_RETRY:
		return PurposeRetry
	case transportpb.Purpose_PURPOSE_DEAD_LETTER:
		return PurposeDeadLetter
	case transportpb.Purpose_PURPOSE_REPLY:
		return PurposeReply
	default:
		return PurposeApplication
	}
}

// statusOf is the word for a receipt's status.
func statusOf(s frame.ReceiptStatus) ReceiptStatus {
	switch s {
	case frame.ReceiptConfirmed:
		return ReceiptConfirmed
	case frame.ReceiptRefused:
		return ReceiptRefused
	default:
		return ReceiptUnknown
	}
}
