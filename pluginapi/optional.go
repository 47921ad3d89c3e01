// SPDX-License-Identifier: Apache-2.0

package pluginapi

import "context"

// Releaser is a Subscription that is told when deliveries are released: nothing
// goes to the source, and no verdict follows. Most transports need not know.
// Release runs in order with Settle, on the same goroutine, and does not block.
type Releaser interface {
	Release(handles []any)
}

// LateAcker is a Subscription whose source still takes an ack by identity after
// the delivery became void, as after an ack timeout. AckLate runs in order with
// Settle, on the same goroutine, and answers ResultDone or ResultStale for each
// handle.
type LateAcker interface {
	AckLate(ctx context.Context, handles []any) []Result
}
