// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/longshore-go/longshore/core"
)

// Publisher publishes values of one type to one destination. It may be used
// from any goroutine while the host runs. [To] makes one; the methods of any other
// panic.
type Publisher[T any] struct{ p *publisher }

// made returns what To made.
func (p *Publisher[T]) made() *publisher {
	if p == nil || p.p == nil {
		panic("longshore: Publisher that To did not make; use what To returned")
	}
	return p.p
}

// Target is a destination that a rule names, as a [*Publisher] is.
type Target interface {
	Destination() core.Destination
}

// To returns a publisher to d. It is called before Run, so that the start can
// check the destination. It panics without a host, and after Run was called.
func To[T any](h *Host, d core.Destination, opts ...PublisherOption) *Publisher[T] {
	if h == nil {
		panic("longshore: To without a host; give it what New returned")
	}
	h.registering("To")
	at := caller()
	if c := uncarried[T](&h.options.codecs); c != nil {
		h.complain(Finding{Endpoint: d.Endpoint, Option: "To", Message: c.message, Fix: c.fix, Places: places(at)})
	}
	return &Publisher[T]{newPublisher(h, d, at, opts)}
}

// Destination returns where it publishes to.
func (p *Publisher[T]) Destination() core.Destination { return p.made().to }

// Publish encodes v, publishes it and waits for the receipt; what that is worth
// is up to the transport. While as much as [InFlight] allows is under way, or
// the endpoint's publish window is used up, it waits for room. An endpoint that
// is down fails it at once with [ErrEndpointDown]. Errors are a [*PublishError].
//
// What a v of type []byte or core.Message shares with the caller must not change
// before Publish returns.
func (p *Publisher[T]) Publish(ctx context.Context, v T, opts ...SendOption) (Receipt, error) {
	c := p.made().newCall()
	o, err := prepare(p.p, c, &v, opts)
	if err != nil {
		p.p.free(c)
		return Receipt{}, refuse(p.p.to, err)
	}
	if o.shares && isRaw[T]() {
		c.own()
	}
	if p.p.first != nil {
		return p.p.nowThrough(ctx, c, o)
	}
	receipt, err, again := p.p.now(ctx, o, &c.out, &c.f, c.limit)
	if again {
		if err != nil { // a transport that was lost may still read it
			c.bytes, c.headers = nil, nil
		}
		p.p.free(c)
	}
	return receipt, err
}

// PublishAsync encodes v, waits for room as [Publisher.Publish] does, hands the
// message over and returns: the receipt comes to the Pending. Messages leave in
// the order of the calls. ctx ends the wait for room only. After an error there
// is no Pending, and nothing is under way unless the error says MaybeSent, as
// when middleware fails a message that it has passed on. Where middleware has
// kept the message from leaving, the Pending has ended with what that returned.
//
// What a v of type []byte or core.Message shares with the caller is not copied
// and must not change before the receipt, nor after an error that says MaybeSent:
// clone the Message that a handler was given, or wait for the receipt before it
// returns.
func (p *Publisher[T]) PublishAsync(ctx context.Context, v T, opts ...SendOption) (*Pending, error) {
	c := p.made().newCall()
	defer p.p.free(c)
	o, err := prepare(p.p, c, &v, opts)
	if err != nil {
		return nil, refuse(p.p.to, err)
	}
	if p.p.first == nil {
		return p.p.later(ctx, o, &c.out, c.limit)
	}
	return p.p.laterThrough(ctx, c, o)
}
