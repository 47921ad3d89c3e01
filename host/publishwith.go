// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/frame"
)

// The bounds of what one delivery holds back: an endpoint's publish window,
// since all of it is handed over at once. Bytes are exceeded by one message at
// most.
const (
	heldMost      = 1024
	heldMostBytes = 8 << 20
)

// Publishes declares where the handler publishes to by [Publisher.PublishWith].
// Explain shows it with what a crash in between would double.
func Publishes(targets ...Target) Rule {
	return Rule{"Publishes", caller(), func(s *ruleSet) *complaint {
		s.publishes = nil
		if len(targets) == 0 {
			return &complaint{"names no destination", "give publishers, or leave the rule out"}
		}
		for i, t := range targets {
			d, ok := destinationOf(t)
			if !ok {
				return &complaint{fmt.Sprintf("number %d is no publisher", i+1), "give publishers, as To returns them"}
			}
			if c := nameless(d); c != nil {
				return c
			}
			if !slices.Contains(s.publishes, d) {
				s.publishes = append(s.publishes, d)
			}
		}
		return nil
	}}
}

// destinationOf asks a target; ok is false for one that cannot say it, as a nil.
func destinationOf(t Target) (d core.Destination, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return t.Destination(), true
}

// PublishWith encodes v and holds it back until the handler of m, or of the batch
// that m is of, has returned nil for it. Then all that is held back, with what
// [Forward] and [HandleReply] publish after it, is checked once more and handed
// over in the order of the calls, before the subscription's next delivery is
// begun, and the delivery is acked when all of it is confirmed. Of what cannot
// leave, nothing does. Where one of several is not confirmed the delivery is
// retried, and those that are confirmed stay sent: with a transport there is no
// more to it than this. After any other outcome nothing leaves.
//
// Its error, a [*PublishError], says at once that v cannot be published: it
// cannot be encoded, the destination or its transport would not take it, the
// rule [Publishes] does not name it, m is not in the hands of its handler, or the
// endpoint is down. The handler decides what that means; v is not held back then.
// A delivery holds back 1024 messages and 8 MiB at most.
//
// What a v of type []byte or core.Message shares with the caller must not change
// before the delivery is settled; what it shares with m does not. A limit of a
// publish of its own ([WithTimeout]) is refused; [WithPublishLimit] holds.
func (p *Publisher[T]) PublishWith(m Incoming, v T, opts ...SendOption) error {
	c := p.made().newCall()
	defer p.p.free(c)
	o, err := prepare(p.p, c, &v, opts)
	if err != nil {
		return refuse(p.p.to, err)
	}
	if c.limit != p.p.limit {
		return refuse(p.p.to, errors.New("WithTimeout cannot be kept here; leave it out, and see WithPublishLimit"))
	}
	h, ctx, err := holder(m, p.p.to)
	if err != nil {
		return refuse(p.p.to, err)
	}
	if p.p.first == nil {
		if err := h.hold(o, &c.out); err != nil {
			return refuse(p.p.to, err)
		}
		return nil
	}
	w := &exit{to: p.p.to, many: true}
	w.leave = func(_ context.Context, m *Outgoing) (_ Receipt, maybe bool, err error) {
		out := m.frame()
		if err := h.hold(o, &out); err != nil {
			return Receipt{}, false, refuse(p.p.to, err)
		}
		return Receipt{}, false, nil
	}
	if _, _, err := w.through(ctx, p.p.first, outgoing(p.p.to, &c.out)); err != nil {
		return p.p.failed(err, false)
	}
	return nil
}

// held is what one delivery holds back.
type held struct {
	mu        sync.Mutex
	publishes []settlement.Publish
	bytes     int64
	over      bool // the handler has returned
}

// errNotHandled says that there is nothing to hold a message back with.
var errNotHandled = errors.New("the message given to PublishWith is not in the hands of its handler; give the one that the handler got, before it returns")

// holder returns what holds messages back with m, and the handler's context.
func holder(m Incoming, to core.Destination) (*held, context.Context, error) {
	e := envelopeOf(m)
	if e == nil || e.delivery == nil || e.cloned {
		return nil, nil, errNotHandled
	}
	if !e.from.handled.rules.allows(e.from.endpoint.name, to) {
		return nil, nil, fmt.Errorf("the subscription does not declare it; add the rule Publishes with this publisher to %s", e.from.name)
	}
	ctx := e.ctx
	if ctx == nil { // middleware, before the handler
		ctx = context.Background()
	}
	for {
		if h := e.held.Load(); h != nil {
			return h, ctx, nil
		}
		e.held.CompareAndSwap(nil, new(held))
	}
}

// allows reports whether the rule Publishes names d, for a subscription of an
// endpoint.
func (s *ruleSet) allows(endpoint string, d core.Destination) bool {
	for _, t := range s.publishes {
		if t.Endpoint == "" {
			t.Endpoint = endpoint
		}
		if t == d {
			return true
		}
	}
	return false
}

// hold checks a message and holds it back.
func (h *held) hold(o *outlet, out *frame.Outgoing) error {
	if f := o.refuses(out); f != nil {
		return f
	}
	if f := out.Check(); f != nil {
		return f
	}
	if !o.on.outbox.Attached() {
		return ErrEndpointDown
	}
	size := int64(frame.Weight(&out.Message))
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
		return errNotHandled
	case len(h.publishes) >= heldMost || h.bytes >= heldMostBytes:
		return refused(core.FaultExhausted, "one delivery can hold back %d messages and %d bytes; publish the rest without it", heldMost, int64(heldMostBytes))
	}
	h.bytes += size
	h.publishes = append(h.publishes, settlement.Publish{
		To: o.to, Message: out.Message, Purpose: out.Purpose, Options: out.Options, DedupID: out.DedupID, DeliverAfter: out.DeliverAfter,
	})
	return nil
}

// holds is how much m holds back.
func (e *envelope) holds() int {
	h := e.held.Load()
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.publishes)
}

// forget drops all that m holds back but the first n: a handler that middleware
// calls again holds it back again.
func (e *envelope) forget(n int) {
	h := e.held.Load()
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := n; i < len(h.publishes); i++ {
		h.bytes -= int64(frame.Weight(&h.publishes[i].Message))
	}
	clear(h.publishes[n:])
	h.publishes = h.publishes[:n]
}

// release returns what m holds back, which is the end of it.
func (e *envelope) release() []settlement.Publish {
	h := e.held.Load()
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	return h.publishes
}
