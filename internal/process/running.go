// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"time"
)

// runningTicks is how finely a running limit is counted.
const runningTicks = 20

// withRunningLimit is context.WithTimeoutCause with a limit on the time in which
// this host itself runs: after it was suspended, a plugin that did nothing wrong
// still has the time that it had before.
func withRunningLimit(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := max(limit/runningTicks, time.Millisecond)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		last, ran := time.Now(), time.Duration(0)
		for ran < limit {
			select {
			case <-limited.Done():
				return
			case <-ticker.C:
			}
			now := time.Now()
			ran += min(now.Sub(last), 2*every)
			last = now
		}
		cancel(cause)
	}()
	return limited, func() {
		cancel(context.Canceled)
		<-ended
	}
}
