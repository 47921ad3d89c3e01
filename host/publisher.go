// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// publisher is a [Publisher] without its type.
type publisher struct {
	host        *Host
	to          core.Destination
	place       place
	limit       time.Duration // 0 = none
	contentType string
	middleware  []func(PublishNext) PublishNext // its own
	first       PublishNext                     // of all middleware; nil = there is none
	room        inFlight
	line        *line // nil = receipts are told as they come
	outlet      atomic.Pointer[outlet]
	calls       sync.Pool // of *call; the publisher's own, since a channel belongs to a testing/synctest bubble
}

func newPublisher(h *Host, to core.Destination, at place, opts []PublisherOption) *publisher {
	p := &publisher{host: h, to: to, place: at}
	p.room.messages, p.room.bytes = defaultInFlight, defaultInFlightBytes
	p.apply(opts)
	h.publishers = append(h.publishers, p)
	return p
}

// call is what one publish needs. Its memory is used again.
type call struct {
	send
	out frame.Outgoing
	f   flight

	bytes   []byte // of own
	headers core.Headers
}

// keptBytes is how much memory a free call keeps for copies at most.
const keptBytes = 64 << 10

// own makes what the message shares with its caller the call's own. Its memory is
// used again only where nobody reads it any more.
func (c *call) own() {
	m := &c.out.Message
	b := slices.Grow(c.bytes[:0], frame.Weight(m))
	add := func(v []byte) []byte {
		at := len(b)
		b = append(b, v...)
		return b[at:len(b):len(b)]
	}
	c.headers = c.headers[:0]
	for _, h := range m.Headers {
		c.headers = append(c.headers, core.Header{Name: h.Name, Value: add(h.Value)})
	}
	m.Payload, m.Headers, c.bytes = add(m.Payload), c.headers, b
}

// newCall returns a call that is free.
func (p *publisher) newCall() *call {
	if c, ok := p.calls.Get().(*call); ok {
		return c
	}
	c := new(call)
	c.f.wake = make(chan struct{}, 1)
	return c
}

// free gives the call back. Nobody else may hold it or its flight.
func (p *publisher) free(c *call) {
	c.send, c.out = send{}, frame.Outgoing{}
	if cap(c.bytes) > keptBytes {
		c.bytes = nil
	}
	clear(c.headers)
	c.f.reset()
	p.calls.Put(c)
}

// prepare applies the options and encodes v.
func prepare[T any](p *publisher, c *call, v *T, opts []SendOption) (*outlet, error) {
	o := p.outlet.Load()
	if o == nil {
		return nil, p.host.notServing()
	}
	c.limit, c.contentType = p.limit, ""
	for _, opt := range opts {
		if opt != nil {
			opt(&c.send)
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	return o, fill(&c.out, &c.send, o, &p.host.options.codecs, p.contentType, v)
}

// fill makes the message out of v and the options. usual is the content type
// where the options name none.
func fill[T any](out *frame.Outgoing, s *send, o *outlet, cs *codecs, usual string, v *T) error {
	asked := s.contentType
	if asked == "" {
		asked = usual
	}
	var payload []byte
	var headers core.Headers
	written := asked
	switch raw := any(v).(type) { // a pointer: nothing is allocated for raw values
	case *[]byte:
		payload = *raw
	case *core.Message:
		payload, headers = raw.Payload, raw.Headers
		if _, has := lookup(headers, headerContentType); has && s.contentType == "" {
			written = ""
		}
	default:
		var err error
		if payload, headers, written, err = encode(cs, *v, asked); err != nil {
			return err
		}
		if asked == "" && o.caps.Headers == core.HeadersNone {
			written = ""
		}
	}
	if len(s.headers) > 0 || written != "" {
		headers = withHeaders(headers, s.headers, written)
	}
	*out = frame.Outgoing{
		Message:      core.Message{Name: o.to.Name, Payload: payload, Headers: headers},
		Purpose:      purposeApplication,
		DeliverAfter: s.after,
		DedupID:      s.dedupID,
		Options:      s.options,
	}
	return nil
}

// withHeaders returns a list of its own of what a publish sends.
func withHeaders(base, added core.Headers, contentType string) core.Headers {
	hs := make(core.Headers, 0, len(base)+len(added)+1)
	hs = append(append(hs, base...), added...)
	if contentType != "" {
		hs = setHeader(hs, headerContentType, contentType)
	}
	return hs
}

// hand takes room for a message and hands it over as f. It reports whether f is
// under way; else nothing was sent, and where there is no error f tells why.
func (p *publisher) hand(ctx context.Context, o *outlet, out *frame.Outgoing, f *flight, late <-chan time.Time) (sent bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, refuse(p.to, err)
	}
	if fault := o.refuses(out); fault != nil {
		return false, refuse(p.to, fault)
	}
	size := int64(frame.Weight(&out.Message))
	if !p.room.tryTake(size) && !p.room.take(ctx, size, late) {
		if err := ctx.Err(); err != nil {
			return false, refuse(p.to, err)
		}
		return false, refuse(p.to, &lateError{f.limit})
	}
	f.p, f.o, f.size = p, o, size
	if p.line != nil {
		p.line.join(f)
	}
	return o.on.outbox.Send(&f.Sending, out, f), nil
}

// now publishes out as f and waits for its receipt. again reports that nobody
// holds f any more.
func (p *publisher) now(ctx context.Context, o *outlet, out *frame.Outgoing, f *flight, limit time.Duration) (_ Receipt, err error, again bool) {
	var late <-chan time.Time
	if f.limit = limit; limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	if _, err := p.hand(ctx, o, out, f, late); err != nil {
		return Receipt{}, err, true
	}
	return f.wait(ctx, late)
}

// later hands out over.
func (p *publisher) later(ctx context.Context, o *outlet, out *frame.Outgoing, limit time.Duration) (*Pending, error) {
	pending := new(Pending)
	f := &pending.f
	var late <-chan time.Time
	var began time.Time
	if f.limit = limit; limit > 0 {
		began = time.Now()
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	sent, err := p.hand(ctx, o, out, f, late)
	switch {
	case err != nil:
		return nil, err
	case !sent:
		f.mu.Lock()
		defer f.mu.Unlock()
		return nil, f.err
	case limit > 0:
		f.within(limit - time.Since(began))
	}
	return pending, nil
}

// outgoing is a message as middleware sees it.
func outgoing(to core.Destination, out *frame.Outgoing) *Outgoing {
	return &Outgoing{To: to, Message: out.Message, DedupID: out.DedupID, Delay: out.DeliverAfter, Options: out.Options}
}

// frame is what middleware has made of a message.
func (o *Outgoing) frame() frame.Outgoing {
	out := frame.Outgoing{
		Message: o.Message, Purpose: purposeApplication,
		DeliverAfter: o.Delay, DedupID: o.DedupID, Options: o.Options,
	}
	out.Message.Name = o.To.Name
	return out
}

// nowThrough is now with middleware.
func (p *publisher) nowThrough(ctx context.Context, c *call, o *outlet) (Receipt, error) {
	m, limit := outgoing(p.to, &c.out), c.limit
	c.bytes, c.headers = nil, nil // it is m's
	p.free(c)
	w := &exit{to: p.to, many: true}
	w.leave = func(ctx context.Context, m *Outgoing) (Receipt, bool, error) {
		out := m.frame()
		receipt, err, _ := p.now(ctx, o, &out, &flight{wake: make(chan struct{}, 1)}, limit)
		var failed *PublishError
		return receipt, errors.As(err, &failed) && failed.MaybeSent, err
	}
	receipt, maybe, err := w.through(ctx, p.first, m)
	if err != nil {
		return Receipt{}, p.failed(err, maybe)
	}
	return receipt, nil
}

// laterThrough is later with middleware.
func (p *publisher) laterThrough(ctx context.Context, c *call, o *outlet) (*Pending, error) {
	m, limit := outgoing(p.to, &c.out), c.limit
	w := &exit{to: p.to}
	var left atomic.Pointer[Pending] // middleware may use goroutines of its own
	w.leave = func(ctx context.Context, m *Outgoing) (_ Receipt, maybe bool, err error) {
		out := m.frame()
		pending, err := p.later(ctx, o, &out, limit)
		if err != nil {
			return Receipt{}, false, err
		}
		left.Store(pending)
		return Receipt{}, false, nil
	}
	receipt, maybe, err := w.through(ctx, p.first, m)
	if err != nil {
		return nil, p.failed(err, maybe)
	}
	pending := left.Load()
	if pending == nil { // it did not leave
		pending = new(Pending)
		pending.f.tell(receipt, nil)
	}
	return pending, nil
}

// failed is the error of a publish that middleware had in its hands.
func (p *publisher) failed(err error, maybe bool) error {
	if e, ok := err.(*PublishError); ok { //nolint:errorlint // one that is wrapped keeps what middleware has said around it
		return e
	}
	return &PublishError{To: p.to, MaybeSent: maybe, Err: err}
}
