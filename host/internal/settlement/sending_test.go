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

func (a answers) Receive(r frame.Receipt) { a <- r }

// Publish sends o and waits for its receipt, as the host does.
func (b *Outbox) Publish(ctx context.Context, o frame.Outgoing) (frame.Receipt, error) {
	canceled := &core.Fault{Code: core.FaultCanceled, Message: "given up", Transient: true}
	if err := ctx.Err(); err != nil {
		return frame.Receipt{Status: frame.ReceiptRefused, Fault: canceled}, err
	}
	to, s := make(answers, 1), new(Sending)
	b.Send(s, &o, to)
	select {
	case r := <-to:
		if b.Down(r) {
			return r, fmt.Errorf("publish: %w", ErrDown)
		}
		return r, nil
	case <-ctx.Done():
	}
	if b.TakeBack(s) {
		return frame.Receipt{Status: frame.ReceiptRefused, Fault: canceled}, ctx.Err()
	}
	select {
	case r := <-to:
		return r, nil
	default:
		return frame.Receipt{Status: frame.ReceiptUnknown, Fault: canceled}, ctx.Err()
	}
}
