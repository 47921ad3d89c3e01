// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// calls is what the runners of all types have in common: what is decided with
// what the user's code did.
type calls struct {
	rules   *ruleSet
	from    *Subscription
	codecs  *codecs
	tracer  Tracer    // nil = none
	replies *replying // nil = the handler's result is no reply
}

// serve makes it ready for deliveries of a subscription in a run.
func (c *calls) serve(s *subscribed) {
	if c.replies != nil {
		c.replies.routes = &routes{s: s, purpose: transportpb.Purpose_PURPOSE_REPLY}
	}
}

// judge reads an error that the user's code returned. ctx is the one that a stop
// ends, not the one of the rule Timeout.
func (c *calls) judge(ctx context.Context, d *settlement.Delivery, err error) settlement.Said {
	if ctx.Err() != nil {
		return settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeLeave}}
	}
	explicit, panicked := outcomeIn(err)
	if panicked != nil {
		return c.panicked(ctx, d, panicked)
	}
	if explicit == nil {
		said, fits, thrown := c.rules.classified(err)
		switch {
		case thrown != nil:
			return c.panicked(ctx, d, thrown)
		case fits:
			said.Err = sound(said.Err)
			return c.backedOff(d, said)
		}
	}
	said := settlement.Said{Snooze: explicit != nil && explicit.snooze}
	said.Outcome, said.Err = outcomeOf(err)
	said.Err = sound(said.Err)
	return c.backedOff(d, said)
}

// panicked is what it means that the user's code has thrown something, or has
// ended its goroutine.
func (c *calls) panicked(ctx context.Context, d *settlement.Delivery, e *PanicError) settlement.Said {
	said := c.rules.panics.said(core.CausePanic, sound(e))
	said.Thrown, said.Stack = fmt.Sprint(e.Value), e.Stack
	if ctx.Err() != nil {
		said.Outcome.Kind = core.OutcomeLeave
	}
	return c.backedOff(d, said)
}

// undecodable is what it means that a message cannot be read.
func (c *calls) undecodable(d *settlement.Delivery, err error) settlement.Said {
	return c.backedOff(d, c.rules.undecodable.said(core.CauseUndecodable, sound(err)))
}

// exited is what it means that the handler has ended its goroutine.
func (c *calls) exited(ctx context.Context, d *settlement.Delivery) settlement.Said {
	return c.panicked(ctx, d, &PanicError{Value: settlement.ErrExited})
}

// unready reports whether it is decided about a delivery before anything is
// decoded: its transport could not read it, or its key could not be told.
func unready(d *settlement.Delivery) bool { return d.Undecodable != nil || d.Unkeyed != nil }

// unread is what it means.
func (c *calls) unread(ctx context.Context, d *settlement.Delivery) settlement.Said {
	if d.Undecodable != nil {
		return c.undecodable(d, d.Undecodable)
	}
	var e *PanicError
	if !errors.As(d.Unkeyed, &e) {
		e = &PanicError{Value: d.Unkeyed} // it has ended its goroutine
	}
	return c.panicked(ctx, d, e)
}

// backedOff turns a plain retry under a Backoff into a retry later.
func (c *calls) backedOff(d *settlement.Delivery, said settlement.Said) settlement.Said {
	if c.rules.backoff.given() && said.Outcome.Kind == core.OutcomeRetry && !said.Spent {
		said.Outcome.Kind = core.OutcomeRetryAfter
		said.Outcome.After = c.rules.backoff.draw(max(d.Number, uint64(d.Returned)+1))
	}
	return said
}

// acked is a nil of the user's code, with what it publishes. said is empty.
func (c *calls) acked(e *envelope, said *settlement.Said) {
	said.Outcome.Kind = core.OutcomeAck
	if e.held.Load() != nil {
		said.Publishes = e.release()
	}
	if !c.rules.forward.IsZero() {
		said.Publishes = append(said.Publishes, c.forward(e))
	}
	if c.replies != nil && e.replies {
		reply, ok, err := c.replies.publish(c, e)
		if err != nil {
			*said = c.failed(e.delivery, err)
			return
		}
		if ok {
			said.Publishes = append(said.Publishes, reply)
		}
	}
	if len(said.Publishes) > 0 {
		said.Failed = c.unpublished(e.undo)
	}
}

// unpublished returns what decides where a publish of an ack is not confirmed;
// undo is told.
func (c *calls) unpublished(undo []func(error)) func(d *settlement.Delivery, err error) settlement.Said {
	if len(undo) == 0 {
		return c.failed
	}
	return func(d *settlement.Delivery, err error) settlement.Said {
		undone(c.from, undo, err)
		return c.failed(d, err)
	}
}

// failed is what it means that a publish of an ack was not confirmed.
func (c *calls) failed(d *settlement.Delivery, err error) settlement.Said {
	said := settlement.Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: err}
	var failed *settlement.PublishError
	if errors.As(err, &failed) {
		said.Err = &PublishError{To: failed.To, MaybeSent: failed.MaybeSent, Err: failed}
		if failed.Purpose == purposeReply {
			said.Outcome.Cause = core.CauseReplyFailed
		}
	}
	return c.backedOff(d, said)
}
