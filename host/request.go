// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// ErrNoRequests says that a transport has no requests: nothing was sent.
var ErrNoRequests = errors.New("the transport has no requests; publish with a reply-to header and subscribe to the replies")

// defaultRequestLimit is how long a reply is waited for where nobody says how
// long: long enough for slow work, and an end to waiting for nobody.
const defaultRequestLimit = 30 * time.Second

// The requests of an endpoint that are under way at a time, as the defaults of
// its publish window are.
const (
	requestsMost      = 1024
	requestsMostBytes = 8 << 20
)

// RequestError says why a request has no reply.
type RequestError struct {
	To        core.Destination
	MaybeSent bool // it may have been sent, and handled
	Err       error
}

// Error names the destination and the reason.
func (e *RequestError) Error() string {
	maybe := ""
	if e.MaybeSent {
		maybe = " (it may have been sent)"
	}
	return fmt.Sprintf("request to %v%s: %v", e.To, maybe, e.Err)
}

// Unwrap returns the reason.
func (e *RequestError) Unwrap() error { return e.Err }

// Request encodes v as [Publisher.Publish] does, sends it as a request and waits
// for the reply, which is decoded as a [Handler]'s message is. It waits for as
// long as [WithTimeout] says, 30 s by default, and no longer than ctx. A
// correlation-id header is added where neither the options nor middleware set one
// and the destination carries headers. While 1024 requests or 8 MiB are under way
// on the endpoint it waits for room. Requests pass through
// [WithPublishMiddleware]; d needs no publisher.
//
// Errors are a [*RequestError]: context.DeadlineExceeded when the time is over,
// [ErrEndpointDown] and [ErrNoRequests] when nothing was sent, a [*core.Fault]
// where the transport or the host refused it. It panics without a host.
func Request[In, Out any](ctx context.Context, h *Host, d core.Destination, v In, opts ...SendOption) (Out, error) {
	var out Out
	if h == nil {
		panic("longshore: Request without a host; give it what New returned")
	}
	s := send{limit: defaultRequestLimit}
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, max(s.limit, 0), &lateError{s.limit})
	defer cancel()
	q := &request{host: h, to: d}
	err := s.err
	if err == nil {
		err = q.open(ctx)
	}
	if err != nil {
		return out, q.failed(err, false)
	}
	var m frame.Outgoing
	if err := fill(&m, &s, q.outlet, &h.options.codecs, "", &v); err != nil {
		return out, q.failed(err, false)
	}
	reply, maybe, err := q.reply(ctx, outgoing(d, &m))
	if err == nil {
		err = decode(&h.options.codecs, "", &reply, &out)
	}
	if err != nil {
		return out, q.failed(err, maybe)
	}
	return out, nil
}

// request is one request under way.
type request struct {
	host   *Host
	to     core.Destination
	outlet *outlet
}

// failed is the error of a request.
func (q *request) failed(err error, maybe bool) error {
	if e, ok := err.(*RequestError); ok { //nolint:errorlint // one that is wrapped keeps what middleware has said around it
		return e
	}
	return &RequestError{To: q.to, MaybeSent: maybe, Err: err}
}

// open finds the endpoint and what the destination can carry.
func (q *request) open(ctx context.Context) (err error) {
	if err := ended(ctx); err != nil {
		return err
	}
	r := q.host.run.Load()
	if r == nil {
		return q.host.notServing()
	}
	a := r.byName[q.to.Endpoint]
	switch {
	case q.to.Name == "":
		return errors.New("it names no destination; give one, as in endpoint.To(\"name\")")
	case q.to.Endpoint == "":
		return fmt.Errorf("%v names no endpoint; make it with endpoint.To", q.to)
	case a == nil:
		return fmt.Errorf("the endpoint of %v is not attached; attach one named %q, or name another", q.to, q.to.Endpoint)
	case a.current() == nil:
		return ErrEndpointDown
	case !a.spec.GetRequests():
		return ErrNoRequests
	}
	if q.outlet, err = a.requests.outlet(ctx, a, q.to); ctx.Err() != nil {
		return ended(ctx)
	}
	return err
}

// reply passes the message through the middleware and returns the reply.
func (q *request) reply(ctx context.Context, o *Outgoing) (reply core.Message, maybe bool, err error) {
	var got atomic.Pointer[core.Message] // middleware may use goroutines of its own
	w := &exit{to: q.to}
	w.leave = func(ctx context.Context, o *Outgoing) (Receipt, bool, error) {
		m, maybe, err := q.send(ctx, o)
		if err != nil {
			return Receipt{}, maybe, q.failed(err, maybe)
		}
		got.Store(&m)
		return Receipt{}, true, nil
	}
	first := q.host.requesting
	if first == nil {
		first = leave
	}
	if _, maybe, err = w.through(ctx, first, o); err != nil {
		return reply, maybe, err
	}
	m := got.Load()
	if m == nil {
		return reply, maybe, errors.New("middleware kept it from leaving and gave no error")
	}
	return *m, true, nil
}

// send sends the request and waits for the reply.
func (q *request) send(ctx context.Context, o *Outgoing) (reply core.Message, maybe bool, err error) {
	if o.Header(headerCorrelationID) == "" && q.outlet.caps.Headers != core.HeadersNone {
		o.SetHeader(headerCorrelationID, rand.Text())
	}
	out := o.frame()
	if f := q.outlet.refuses(&out); f != nil {
		return reply, false, f
	}
	if f := out.Check(); f != nil {
		return reply, false, f
	}
	if q.outlet.shares { // it may be cut off
		out.Message = cloneMessage(out.Message)
	}
	a := q.outlet.on
	size := int64(frame.Weight(&out.Message))
	if !a.requests.room.tryTake(size) && !a.requests.room.take(ctx, size, nil) {
		return reply, false, ended(ctx)
	}
	defer a.requests.room.give(size)
	if err := ended(ctx); err != nil {
		return reply, false, err
	}
	g := a.current()
	if g == nil {
		return reply, false, ErrEndpointDown
	}
	deadline, limited := ctx.Deadline()
	if !limited { // middleware made a context of its own
		deadline = time.Now().Add(defaultRequestLimit)
		limited, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = limited
	}
	r, err := g.Link().Request(ctx, &transportpb.RequestRequest{
		Outgoing: &transportpb.Outgoing{
			Name: out.Message.Name, Headers: convert.FromHeaders(out.Message.Headers), Payload: out.Message.Payload,
			Purpose: transportpb.Purpose_PURPOSE_APPLICATION, DeliverAfter: int64(out.DeliverAfter),
			DedupId: out.DedupID, Options: out.Options,
		},
		Timeout: int64(time.Until(deadline)),
	})
	if err != nil {
		maybe, err = unanswered(ctx, err)
		return reply, maybe, err
	}
	return convert.ToMessage(r.GetReply()), true, nil
}

// unanswered reads the error of a call. maybe says whether the request may have
// been sent.
func unanswered(ctx context.Context, err error) (maybe bool, _ error) {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // the plugin was as punctual as we are
	}
	if late := ended(ctx); late != nil {
		return true, late
	}
	var lost *link.LostError
	if err = settlement.Foreign(err); errors.As(err, &lost) {
		return true, &core.Fault{Code: core.FaultUnavailable, Message: "plugin lost before the reply: " + err.Error(), Transient: true}
	}
	var f *core.Fault
	if !errors.As(err, &f) {
		return true, err
	}
	switch f.Code {
	case core.FaultTimeout:
		return true, fmt.Errorf("%w: %w", context.DeadlineExceeded, f)
	case core.FaultInvalid, core.FaultUnsupported, core.FaultNotFound, core.FaultDenied, core.FaultTooLarge:
		return false, f
	}
	return true, f
}

// ended is why ctx has ended, nil while it has not.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	var late *lateError
	if cause := context.Cause(ctx); errors.As(cause, &late) {
		return late
	}
	return ctx.Err()
}

// requests are an endpoint's.
type requests struct {
	room inFlight

	mu    sync.Mutex
	known map[string]knownRoute // of destinations that no publisher has
}

// outlet returns a destination's outlet, or why the plugin refuses it.
func (q *requests) outlet(ctx context.Context, a *attached, to core.Destination) (*outlet, error) {
	if t := a.run.target(to, transportpb.Purpose_PURPOSE_APPLICATION); t != nil {
		return newOutlet(a, to, convert.ToPublishing(t.GetPublishing())), nil
	}
	q.mu.Lock()
	known, ok := q.known[to.Name]
	q.mu.Unlock()
	if !ok {
		var lasting bool
		known.route, lasting, known.err = a.ask(ctx, &transportpb.Target{Name: to.Name, Purpose: transportpb.Purpose_PURPOSE_APPLICATION})
		if lasting && len(to.Name) <= nameKept {
			q.mu.Lock()
			if q.known == nil || len(q.known) >= routesKept {
				q.known = make(map[string]knownRoute)
			}
			q.known[to.Name] = known
			q.mu.Unlock()
		}
	}
	if known.err != nil {
		return nil, refused(core.FaultInvalid, "the transport refuses it: %v", known.err)
	}
	return newOutlet(a, to, known.route.Caps), nil
}
