// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Outgoing is a message on its way out as middleware for publishing sees it:
// encoded, with its headers, not checked yet. Middleware may change all of it but
// To.
type Outgoing struct {
	To      core.Destination
	Message core.Message  // its Name is To's when it leaves
	DedupID string        // see [WithDedupID]
	Delay   time.Duration // see [WithDelay]
	Options []byte        // of the transport, one JSON object; nil = none

	exit *exit
}

// Header returns the value of a header as text, "" where it is not there. The
// name's case does not matter; of several values the last one counts.
func (o *Outgoing) Header(name string) string {
	v, _ := lookup(o.Message.Headers, name)
	return v
}

// SetHeader sets a header to one value, in place of all that it has. The list
// that was published stays as it is.
func (o *Outgoing) SetHeader(name, value string) {
	o.Message.Headers = setHeader(o.Message.Headers, name, value)
}

// setHeader returns a list of its own in which name has one value.
func setHeader(hs core.Headers, name, value string) core.Headers {
	out := make(core.Headers, 0, len(hs)+1)
	for _, h := range hs {
		if !strings.EqualFold(h.Name, name) {
			out = append(out, h)
		}
	}
	return append(out, core.Header{Name: name, Value: []byte(value)})
}

// PublishNext publishes a message, or passes it on to the next middleware. Where
// nobody waits for the receipt ([Publisher.PublishAsync],
// [Publisher.PublishWith], [Request]) the Receipt is zero, and nil means handed
// over, held back, or answered. Middleware of Publish may call its next several
// times, each of which publishes; elsewhere a call is refused once one went
// well. Middleware that does not call it keeps the message from leaving, and
// what it returns is what the caller gets. What it has under way when it returns
// ends as at the end of its context, and nothing leaves after that. A panic goes to
// the caller.
type PublishNext func(ctx context.Context, o *Outgoing) (Receipt, error)

// wrapLeaving wraps the publishing of messages into middleware, the first outermost;
// nil without any.
func wrapLeaving(ms []func(PublishNext) PublishNext) (next PublishNext, c *complaint) {
	if len(ms) == 0 {
		return nil, nil
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			next, c = nil, &complaint{fmt.Sprintf("has middleware that cannot be built: %v", thrown), "repair what it is given"}
		}
	}()
	next = leave
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i] == nil {
			return nil, &complaint{"has a nil among its middleware", "leave it out"}
		}
		if next = ms[i](next); next == nil {
			return nil, &complaint{"has middleware that returns no function", "return next where there is nothing to do"}
		}
	}
	return next, nil
}

// exit is what becomes of one message behind the middleware.
type exit struct {
	to core.Destination
	// leave checks and sends it. maybe says of an error that it may have left.
	leave func(ctx context.Context, o *Outgoing) (receipt Receipt, maybe bool, err error)
	many  bool        // it may leave several times
	taken atomic.Bool // it is leaving, or has left
	left  atomic.Bool // it has left, or may have

	passage passage
}

// The errors of middleware that does what it may not.
var (
	errOutgoing = errors.New("middleware must pass on the Outgoing that it was given")
	errTwice    = errors.New("the message has left already; middleware may pass it on once here")
)

// leave is behind the last middleware.
func leave(ctx context.Context, o *Outgoing) (Receipt, error) {
	if o == nil || o.exit == nil {
		return Receipt{}, errOutgoing
	}
	w := o.exit
	if o.To != w.to {
		return Receipt{}, fmt.Errorf("middleware changed the destination to %v; publish to it with a publisher of its own", o.To)
	}
	if err := w.passage.begin(); err != nil {
		return Receipt{}, err
	}
	defer w.passage.end()
	if w.taken.Swap(true) && !w.many {
		return Receipt{}, errTwice
	}
	ctx, cancel := w.passage.until(ctx)
	defer cancel()
	receipt, maybe, err := w.leave(ctx, o)
	if err == nil || maybe {
		w.left.Store(true)
	} else {
		w.taken.Store(false)
	}
	return receipt, err
}

// through passes o through the middleware. maybe says of an error that the
// message may have left.
func (w *exit) through(ctx context.Context, first PublishNext, o *Outgoing) (_ Receipt, maybe bool, err error) {
	o.exit = w
	defer w.passage.close()
	receipt, err := first(ctx, o)
	return receipt, w.left.Load(), err
}
