// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// answers takes the one receipt of a publish that somebody waits for.
type answers chan frame.Receipt

func (a answers) receive(_ uint64, r frame.Receipt) { a <- r }

// Publish publishes o for the application and waits for its receipt. It blocks
// while the publish window is used up, and fails with ErrDown at once when no
// generation is attached. The receipt says in any case whether o may have been
// sent. When ctx ends after o was handed over, the receipt is unknown, the error
// is ctx's, and o must not be changed any more. o.ID is not used.
func (b *Outbox) Publish(ctx context.Context, o frame.Outgoing) (frame.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return b.cut(frame.ReceiptRefused), fmt.Errorf("publish to endpoint %q: %w", b.o.Endpoint, err)
	}
	to := make(answers, 1)
	p := &publish{out: o, to: to}
	b.hand(p)
	select {
	case r := <-to:
		return r, b.downError(r)
	case <-ctx.Done():
	}
	status := frame.ReceiptUnknown
	if b.take(p) {
		status = frame.ReceiptRefused
	} else {
		select {
		case r := <-to: // it came beside
			return r, b.downError(r)
		default:
		}
	}
	return b.cut(status), fmt.Errorf("publish to endpoint %q: %w", b.o.Endpoint, ctx.Err())
}

// cut is the receipt of a publish that was given up.
func (b *Outbox) cut(status frame.ReceiptStatus) frame.Receipt {
	return frame.Receipt{Status: status, Fault: &core.Fault{
		Code: core.FaultCanceled, Message: "publish given up before its receipt", Transient: true,
	}}
}

// downError is ErrDown for a receipt that says so.
func (b *Outbox) downError(r frame.Receipt) error {
	if r.Fault != nil && (r.Fault == b.down || r.Fault == b.over) {
		return fmt.Errorf("publish to endpoint %q: %w", b.o.Endpoint, ErrDown)
	}
	return nil
}
