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
)

// ErrEndpointDown says that an endpoint has no running plugin, or that the host
// is not running: nothing was sent.
var ErrEndpointDown = errors.New("endpoint is down; try again when the host is ready")

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
	reason := e.Err.Error()
	if engine, ok := e.Err.(*settlement.PublishError); ok { //nolint:errorlint // its own text would name the destination again
		reason = engine.Text()
	}
	return fmt.Sprintf("publish to %v%s: %s", e.To, maybe, reason)
}

// Unwrap returns the reason.
func (e *PublishError) Unwrap() error { return e.Err }

// Is makes what the engine says of an endpoint that is down [ErrEndpointDown].
func (e *PublishError) Is(target error) bool {
	return target == ErrEndpointDown && errors.Is(e.Err, settlement.ErrDown)
}

// refuse returns the error of what was not sent.
func refuse(to core.Destination, err error) error { return &PublishError{To: to, Err: err} }

// lateError says that a publish or request took longer than it may.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("not answered within %v", e.limit) }

// Unwrap makes it what a context's deadline is.
func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

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

// read returns what a receipt says of a publish to o.
func (o *outlet) read(r frame.Receipt) (Receipt, error) {
	if r.Status == frame.ReceiptConfirmed {
		return Receipt{Unrouted: r.Unrouted, Position: r.Position}, nil
	}
	e := &PublishError{To: o.to, MaybeSent: r.Status != frame.ReceiptRefused}
	switch {
	case o.on.outbox.Down(r):
		e.Err = ErrEndpointDown
	case r.Fault != nil:
		e.Err = r.Fault
	default:
		e.Err = errors.New("the transport gave no reason")
	}
	return Receipt{}, e
}
