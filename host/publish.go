// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
)

// ErrEndpointDown says that an endpoint has no running plugin, or that the host
// is not running: nothing was sent.
var ErrEndpointDown = errors.New("endpoint is down; try again when the host is ready")

// Publisher publishes values of one type to one destination. It may be used
// from any goroutine while the host runs.
type Publisher[T any] struct {
	host *Host
	to   core.Destination
}

// To returns a publisher to d. It is called before Run, so that the start can
// check the destination. It panics without a host, and after Run was called.
func To[T any](h *Host, d core.Destination) *Publisher[T] {
	if h == nil {
		panic("longshore: To without a host; give it what New returned")
	}
	h.registering("To")
	at := caller()
	if c := uncarried[T](&h.options.codecs); c != nil {
		h.complain(Finding{Endpoint: d.Endpoint, Option: "To", Message: c.message, Fix: c.fix, Places: places(at)})
	}
	h.publishers = append(h.publishers, publisherUse{to: d, place: at})
	return &Publisher[T]{host: h, to: d}
}

// Receipt says what a confirmed publish came to.
type Receipt struct {
	Unrouted bool   // accepted, but nobody reads it
	Position []byte // where the transport put it; nil = unknown
}

// PublishError says why a publish was not confirmed.
type PublishError struct {
	To        core.Destination
	MaybeSent bool // it may have been sent: sending it again may double it
	Err       error
}

// Error names the destination and the reason.
func (e *PublishError) Error() string {
	maybe := ""
	if e.MaybeSent {
		maybe = " (it may have been sent)"
	}
	return fmt.Sprintf("publish to %v%s: %v", e.To, maybe, e.Err)
}

// Unwrap returns the reason.
func (e *PublishError) Unwrap() error { return e.Err }

// SendOption tunes one publish.
type SendOption func(*send)

// send is one publish under way.
type send struct {
	headers     core.Headers
	contentType string
	dedupID     string
	after       time.Duration
	options     any
}

// WithHeader adds a header. Given several times under one name all of them are
// sent, in order.
func WithHeader(name, value string) SendOption {
	return func(s *send) { s.headers = append(s.headers, core.Header{Name: name, Value: []byte(value)}) }
}

// WithContentType sets the header content-type and the codec: JSON and protobuf
// are encoded, any other takes []byte or core.Message only. The default adds
// the header to protobuf messages alone.
func WithContentType(t string) SendOption { return func(s *send) { s.contentType = t } }

// WithDedupID names the message, so that one sent again under the same id
// arrives once where the destination drops doubles (core.Publishing.Dedups, see
// longshore plugin describe). Elsewhere the id has no effect.
func WithDedupID(id string) SendOption { return func(s *send) { s.dedupID = id } }

// WithDelay asks the transport to deliver after d. It is refused where the
// destination does not delay, or not that long.
func WithDelay(d time.Duration) SendOption { return func(s *send) { s.after = d } }

// WithOptions gives the transport's own options of the message: a struct of its
// settings package or a map.
func WithOptions(v any) SendOption { return func(s *send) { s.options = v } }

// Publish encodes v, publishes it and waits for the receipt; what that is worth
// is up to the transport. While the endpoint's publish window is used up it
// waits for room. An endpoint that is down fails it at once with
// [ErrEndpointDown]. Errors are a [*PublishError].
func (p *Publisher[T]) Publish(ctx context.Context, v T, opts ...SendOption) (Receipt, error) {
	var s send
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	receipt, maybe, err := p.publish(ctx, v, &s)
	if err != nil {
		return Receipt{}, &PublishError{To: p.to, MaybeSent: maybe, Err: err}
	}
	return Receipt{Unrouted: receipt.Unrouted, Position: receipt.Position}, nil
}

func (p *Publisher[T]) publish(ctx context.Context, v T, s *send) (frame.Receipt, bool, error) {
	payload, headers, contentType, err := encode(&p.host.options.codecs, v, s.contentType)
	if err != nil {
		return frame.Receipt{}, false, err
	}
	out := frame.Outgoing{
		Message:      core.Message{Name: p.to.Name, Payload: payload, Headers: headers},
		Purpose:      uint8(transportpb.Purpose_PURPOSE_APPLICATION),
		DeliverAfter: s.after,
		DedupID:      s.dedupID,
	}
	if len(s.headers) > 0 || contentType != "" {
		out.Message.Headers = withHeaders(headers, s.headers, contentType)
	}
	if s.options != nil {
		if out.Options, err = pluginapi.EncodeSettings(s.options); err != nil {
			return frame.Receipt{}, false, fmt.Errorf("encode options: %w", err)
		}
	}
	r := p.host.run.Load()
	if r == nil {
		return frame.Receipt{}, false, p.host.notServing()
	}
	return r.publish(ctx, p.to, out)
}

// notRunError is [ErrEndpointDown] of a host whose Run was not called yet.
type notRunError struct{}

func (notRunError) Error() string {
	return "the host does not run yet; call Publish while Run runs"
}

func (notRunError) Unwrap() error { return ErrEndpointDown }

// notServing says why a host that does not serve publishes nothing.
func (h *Host) notServing() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ran {
		return notRunError{}
	}
	return ErrEndpointDown
}

// withHeaders returns a list of its own of what a publish sends.
func withHeaders(base, added core.Headers, contentType string) core.Headers {
	hs := make(core.Headers, 0, len(base)+len(added)+1)
	hs = append(append(hs, base...), added...)
	if contentType != "" {
		hs = append(hs, core.Header{Name: headerContentType, Value: []byte(contentType)})
	}
	return hs
}

// publish sends out to a destination of a running host. maybe tells of an error
// whether the message may have been sent.
func (r *run) publish(ctx context.Context, to core.Destination, out frame.Outgoing) (_ frame.Receipt, maybe bool, _ error) {
	a := r.attached(to.Endpoint)
	if a == nil {
		return frame.Receipt{}, false, ErrEndpointDown
	}
	if limit := a.delayLimit(to.Name); out.DeliverAfter > 0 && (limit == 0 || out.DeliverAfter >= limit) {
		f := &core.Fault{Code: core.FaultUnsupported, Message: "it cannot delay; leave WithDelay out"}
		if limit > 0 {
			f.Message = fmt.Sprintf("a delay of %v is not below the destination's limit of %v; ask for less", out.DeliverAfter, limit)
		}
		return frame.Receipt{}, false, f
	}
	receipt, err := a.outbox.Publish(ctx, out)
	switch {
	case errors.Is(err, settlement.ErrDown):
		return receipt, false, ErrEndpointDown
	case receipt.Status == frame.ReceiptConfirmed && err == nil:
		return receipt, false, nil
	case receipt.Status == frame.ReceiptRefused:
		return receipt, false, reason(receipt.Fault, err)
	default:
		return receipt, true, reason(receipt.Fault, err)
	}
}

// reason returns the error of a receipt that is not a confirmation.
func reason(f *core.Fault, err error) error {
	switch {
	case err != nil:
		return err
	case f != nil:
		return f
	default:
		return errors.New("the transport gave no reason")
	}
}
