// SPDX-License-Identifier: Apache-2.0

package middleware

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/host"
)

// Limiter says when one more may go on, as *rate.Limiter of golang.org/x/time/rate
// does.
type Limiter interface {
	// Wait returns nil when one more may go on, and an error when ctx ends before.
	Wait(ctx context.Context) error
}

// RateLimit waits for l before each delivery, on the subscription's worker. Several
// subscriptions may share a limiter. An error of l is a retry of the delivery. For
// one subscription alone the rule host.RateLimit holds no worker.
func RateLimit(l Limiter) func(host.Next) host.Next {
	if l == nil {
		return refuse("middleware.RateLimit: it has no limiter")
	}
	return func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			if err := l.Wait(ctx); err != nil {
				return fmt.Errorf("wait for the rate limit: %w", err)
			}
			return next(ctx, m)
		}
	}
}
