// SPDX-License-Identifier: Apache-2.0

// Package middleware has ready middleware for handlers, to be given to
// host.Middleware, and for publishers (Publish...), to be given to
// host.WithPublishMiddleware or host.PublishMiddleware.
//
// # Order
//
// The first one given is outermost. Those that wait ([RateLimit], [Deduplicate])
// belong outside of [Timeout], so that what waits does not use up the handler's
// time; [Recover] belongs innermost, so that the others see a panic as an error.
//
// # Caveats
//
// Retries, dead letters, backoff, timeouts of one handler and rate limits of one
// subscription are rules of package host, which work without the order of
// middleware deciding anything: use those where they do.
package middleware

import (
	"fmt"

	"github.com/longshore-go/longshore/host"
)

// refuse returns middleware that cannot be built, which the host's start reports
// with its place.
func refuse(format string, args ...any) func(host.Next) host.Next {
	return func(host.Next) host.Next { panic(fmt.Sprintf(format, args...)) }
}
