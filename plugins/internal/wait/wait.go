// SPDX-License-Identifier: Apache-2.0

// Package wait waits no longer than a context lasts.
package wait

import (
	"context"
	"time"
)

// For waits, and reports false when ctx has ended before.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
