// SPDX-License-Identifier: Apache-2.0

package middleware

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/host"
)

// Timeout ends the context of what it wraps after d. What the handler then
// returns still decides, and one that does not look at its context goes on. The
// rule host.Timeout covers all middleware as well; this one covers what it wraps.
func Timeout(d time.Duration) func(host.Next) host.Next {
	if d <= 0 {
		return refuse("middleware.Timeout: %v is no limit", d)
	}
	return func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return next(ctx, m)
		}
	}
}
