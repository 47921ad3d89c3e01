// SPDX-License-Identifier: Apache-2.0

package middleware

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/longshore-go/longshore/host"
)

// refusePublish is refuse for publishing.
func refusePublish(format string, args ...any) func(host.PublishNext) host.PublishNext {
	return func(host.PublishNext) host.PublishNext { panic(fmt.Sprintf(format, args...)) }
}

// PublishRecover turns a panic of the middleware that it wraps into a
// *host.PanicError. Without it a panic goes to the caller.
func PublishRecover() func(host.PublishNext) host.PublishNext {
	return func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (r host.Receipt, err error) {
			defer func() {
				if v := recover(); v != nil {
					r, err = host.Receipt{}, &host.PanicError{Value: v, Stack: string(debug.Stack())}
				}
			}()
			return next(ctx, o)
		}
	}
}

// PublishTimeout ends the context of what it wraps after d: the wait for room
// and for the receipt. A publish that was cut off may have been sent.
// host.PublishTimeout and host.WithTimeout say the same of one publisher and of one
// message.
func PublishTimeout(d time.Duration) func(host.PublishNext) host.PublishNext {
	if d <= 0 {
		return refusePublish("middleware.PublishTimeout: %v is no limit", d)
	}
	return func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return next(ctx, o)
		}
	}
}

// PublishRateLimit waits for l before each message. Several publishers may share
// a limiter, and subscriptions as well. An error of l is one of the publish, and
// nothing was sent.
func PublishRateLimit(l Limiter) func(host.PublishNext) host.PublishNext {
	if l == nil {
		return refusePublish("middleware.PublishRateLimit: it has no limiter")
	}
	return func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) {
			if err := l.Wait(ctx); err != nil {
				return host.Receipt{}, fmt.Errorf("wait for the rate limit: %w", err)
			}
			return next(ctx, o)
		}
	}
}

// PublishCorrelationID gives messages without a correlation-id header the id that
// the context holds, see [CorrelationID]. Without one in the context they leave as
// they are.
func PublishCorrelationID() func(host.PublishNext) host.PublishNext {
	return func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) {
			if id := CorrelationIDOf(ctx); id != "" && o.Header(headerCorrelationID) == "" {
				o.SetHeader(headerCorrelationID, id)
			}
			return next(ctx, o)
		}
	}
}
